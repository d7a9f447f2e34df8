package plane

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestClaimedDirectoryIsRemovedAgain(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	given := t.TempDir() // exists: only its contents are ours
	for dir, stays := range map[string]bool{"": false, filepath.Join(given, "new"): false, t.TempDir(): true} {
		s, err := claim(dir)
		if err != nil {
			t.Fatalf("claim %q: %v", dir, err)
		}
		write(t, filepath.Join(s.path, "file"))
		if err := s.remove(); err != nil {
			t.Errorf("remove %q: %v", dir, err)
		}
		entries, err := os.ReadDir(s.path)
		if (err == nil) != stays || len(entries) != 0 {
			t.Errorf("after remove of %q: %d entries, %v; directory should stay: %t", dir, len(entries), err, stays)
		}
	}
}

func TestClaimTakesNothingThatBelongsToOthers(t *testing.T) {
	foreign := t.TempDir()
	write(t, filepath.Join(foreign, "precious"))
	expectClaimError(t, foreign, "not empty")
	if _, err := os.Stat(filepath.Join(foreign, "precious")); err != nil {
		t.Error(err)
	}

	used, err := claim(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	expectClaimError(t, used.path, "another lab runs in it")

	// What a killed lab leaves: the lock is there and free.
	write(t, filepath.Join(used.path, "leftover"))
	if err := used.lock.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := claim(used.path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(again.path, "leftover")); err == nil {
		t.Error("what the killed lab left is there after taking over")
	}
	expectClaimError(t, used.path, "another lab runs in it")
}

func TestSweepRemovesOnlyDeadLabs(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	living, err := claim("")
	if err != nil {
		t.Fatal(err)
	}
	dead, err := claim("")
	if err != nil {
		t.Fatal(err)
	}
	if err := dead.lock.Close(); err != nil {
		t.Fatal(err)
	}
	unclaimed := map[string]time.Duration{"young": 0, "old": 2 * unclaimedAge}
	for name, age := range unclaimed {
		dir := filepath.Join(temp, tempPrefix+name)
		mkdir(t, dir)
		if err := os.Chtimes(dir, time.Time{}, time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	mkdir(t, filepath.Join(temp, "other"))
	write(t, filepath.Join(temp, "other", lockName))

	sweep()

	want := map[string]bool{
		filepath.Base(living.path): true,
		filepath.Base(dead.path):   false,
		tempPrefix + "young":       true,
		tempPrefix + "old":         false,
		"other":                    true,
	}
	for name, stays := range want {
		if _, err := os.Stat(filepath.Join(temp, name)); (err == nil) != stays {
			t.Errorf("after the sweep %s: %v; should stay: %t", name, err, stays)
		}
	}
}

func expectClaimError(t *testing.T, dir, want string) {
	t.Helper()
	s, err := claim(dir)
	if err == nil {
		_ = s.lock.Close()
		t.Errorf("claim %s: no error, want %q", dir, want)
	} else if !strings.Contains(err.Error(), want) {
		t.Errorf("claim %s: %v, want %q", dir, err, want)
	}
}

func write(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func mkdir(t *testing.T, path string) {
	t.Helper()
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
}
