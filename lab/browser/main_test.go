// Package browser looks at the page with a real browser: Chromium without a window,
// driven over its DevTools protocol. What is served is the product's own server, over
// synthetic clusters of chosen sizes, and once the whole controller on a real control
// plane.
//
// Without a Chromium the tests are skipped; where CI or BROWSER_REQUIRED is set that is
// a failure. Screenshots go to the directory that SCREENSHOTS names, else to the test's
// artifacts (go test -artifacts).
//
// Accessibility is judged with the accessibility tree that Chromium itself makes for
// screen readers, and with checks of our own of the rules that matter most
// (accessible_test.go); a rule engine that had to be downloaded would be one more thing
// that a test run depends on.
package browser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

const (
	// patience bounds what a test waits for in the browser.
	patience = 90 * time.Second
	// attempt bounds one question of many. A question that arrives while a page makes
	// room for the next is sometimes never answered.
	attempt = 5 * time.Second
)

// chromium is the one browser of all tests, once one of them has asked for it.
var chromium struct {
	sync.Mutex
	*window
}

// window is what NewContext makes.
type window struct {
	ctx  context.Context
	stop func()
}

func TestMain(m *testing.M) {
	code := m.Run()
	if chromium.window != nil {
		chromium.stop()
	}
	os.Exit(code)
}

// findChromium is where a Chromium is, "" for nowhere.
func findChromium() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// start starts the browser, unless it runs.
func start(path string) (context.Context, error) {
	chromium.Lock()
	defer chromium.Unlock()
	if chromium.window != nil {
		return chromium.ctx, nil
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.IgnoreCertErrors,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.WSURLReadTimeout(patience))
	allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, stop := chromedp.NewContext(allocator)
	chromium.window = &window{ctx, func() { stop(); end() }}
	if err := chromedp.Do(ctx); err != nil {
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	return ctx, nil
}

// tab is a window of the browser, and all that went wrong in it.
type tab struct {
	*testing.T
	ctx    context.Context
	origin string

	mu       sync.Mutex
	requests []string
	received float64 // bytes, as they came over the wire
	wrong    []string
	expected []string // what may go wrong, by a part of it
}

// open makes a window for what is served at an origin. When the test ends nothing may
// have gone wrong in it: no error on the console, no request to another origin.
func open(t *testing.T, origin string) *tab {
	t.Helper()
	path := findChromium()
	if path == "" {
		if os.Getenv("CI") != "" || os.Getenv("BROWSER_REQUIRED") != "" {
			t.Fatal("there is no Chromium, and CI or BROWSER_REQUIRED says that there must be")
		}
		t.Skip("there is no Chromium (Debian: apt-get install chromium)")
	}
	browser, err := start(path)
	if err != nil {
		t.Fatal(err)
	}
	b := &tab{T: t, origin: origin}
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext(), chromedp.WithListener(b.hear))
	b.ctx = ctx
	t.Cleanup(func() {
		cancel()
		for _, what := range b.failures() {
			t.Error(what)
		}
	})
	if err := chromedp.Do(ctx); err != nil { // makes the window, which lives as long as ctx
		t.Fatalf("open a window: %v", err)
	}
	command(b, network.Enable, network.EnableParams{})
	command(b, log.Enable, cdp.Empty{})
	b.size(1280, 900)
	return b
}

func (b *tab) hear(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
		if url := e.Request.URL; !strings.HasPrefix(url, b.origin+"/") && !strings.HasPrefix(url, "data:") && url != "about:blank" {
			b.wrong = append(b.wrong, "a request to another origin: "+url)
		}
	case *network.EventLoadingFinished:
		b.received += e.EncodedDataLength
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			b.wrong = append(b.wrong, fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL))
		}
	case *runtime.EventExceptionThrown:
		b.wrong = append(b.wrong, fmt.Sprintf("exception: %s %+v", e.ExceptionDetails.Text, e.ExceptionDetails.Exception))
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			b.wrong = append(b.wrong, fmt.Sprintf("console: %s %v", e.Type, e.Args))
		}
	}
}

// failures are those that no test expected.
func (b *tab) failures() (unexpected []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
next:
	for _, what := range b.wrong {
		for _, part := range b.expected {
			if strings.Contains(what, part) {
				continue next
			}
		}
		unexpected = append(unexpected, what)
	}
	return unexpected
}

// run does something in the browser.
func (b *tab) run(steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.Fatal(err)
	}
}

// command sends a command of the protocol and returns its result.
func command[P, R any](b *tab, cmd cdp.Command[P, R], params P) R {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	result, err := chromedp.Call(ctx, cmd, params)
	if err != nil {
		b.Fatal(err)
	}
	return result
}

// visit loads a page, and waits until its cells are drawn if it has any.
func (b *tab) visit(path string) {
	b.Helper()
	b.run(chromedp.Navigate(b.origin + path))
	b.drawn()
}

func (b *tab) drawn() {
	b.Helper()
	b.until("the cells", `!document.querySelector('[data-field]') || document.querySelector('[data-cells] .nodes, [data-note]:not([hidden])') !== null && !document.querySelector('[data-note] noscript')`)
	b.until("the first paint", `performance.getEntriesByType('paint').length > 0`)
	// The first look at the size of the field draws it anew, and a click meanwhile is one on what is gone.
	b.until("another frame", `window.framed || (window.framed === undefined && requestAnimationFrame(() => setTimeout(() => { window.framed = 1; })), window.framed = 0)`)
}

// frame waits until what has changed is laid out, and those who look at that have been told.
func (b *tab) frame() {
	b.Helper()
	eval[bool](b, `new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => done(true)))))`)
}

// corner is a place on what a selector finds, near its upper left.
func (b *tab) corner(selector string) (x, y float64) {
	b.Helper()
	at := eval[[2]float64](b, fmt.Sprintf(`(() => { const r = document.querySelector(%q).getBoundingClientRect(); return [r.x + 4, r.y + 4]; })()`, selector))
	return at[0], at[1]
}

// until waits for an expression to be true.
func (b *tab) until(what, expression string) {
	b.Helper()
	if err := b.within(patience, expression); err != nil {
		b.shot("failed")
		b.Fatalf("waited for %s: %v", what, err)
	}
}

// within waits no longer than that for an expression to be true.
func (b *tab) within(patience time.Duration, expression string) error {
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		one, stop := context.WithTimeout(ctx, attempt)
		yes, err := chromedp.Run(one, chromedp.Evaluate[bool]("Boolean("+expression+")"))
		stop()
		if yes {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		}
	}
}

// click follows what a selector finds, with the mouse.
func (b *tab) click(selector string) {
	b.Helper()
	b.leave("a click on "+selector, chromedp.Click(selector))
}

// leave clicks, and waits for the page that this leads to. Chromium loses a click now and
// then, when it is busy and has hardly painted: one of which the page has heard nothing is
// made again.
func (b *tab) leave(what string, click chromedp.Action[chromedp.Void]) {
	b.Helper()
	const there, heard = `window.heard === undefined && document.readyState === 'complete'`, `window.heard !== 0`
	for again := 0; ; again++ {
		b.run(chromedp.Evaluate[chromedp.Void](`window.heard = 0; addEventListener('mousedown', () => window.heard++, {capture: true, once: true}); undefined`), click)
		if b.within(attempt, there) == nil {
			break
		}
		if again == 3 || b.within(attempt, heard) == nil {
			b.until("another page after "+what, there)
			break
		}
		b.Logf("%s was lost", what)
	}
	b.drawn()
}

// eval returns what an expression is, or what it promises.
func eval[T any](b *tab, expression string) T {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.Fatalf("%s: %v", expression, err)
	}
	return value
}

// size sets how large the window is. Up to 600 pixels it is a phone.
func (b *tab) size(width, height int64) {
	b.Helper()
	command(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width <= 600,
	})
}

// scheme is light or dark.
func (b *tab) scheme(name string) {
	b.Helper()
	command(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}},
	})
}

// shot keeps a picture of the whole page.
func (b *tab) shot(name string) {
	b.Helper()
	picture, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(filepath.Join(b.pictures(), strings.ReplaceAll(b.Name(), "/", "-")+"-"+name+".png"), picture, 0o644)
	}
	if err != nil {
		b.Errorf("take a picture: %v", err)
	}
}

func (b *tab) pictures() string {
	if dir := os.Getenv("SCREENSHOTS"); dir != "" {
		return dir
	}
	return b.ArtifactDir()
}
