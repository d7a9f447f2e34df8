// Whoever presses on something means what is there then. Between that and the click that
// comes of it nothing may be put in its place: the click would be lost, or open another.
const longest = 5000; // ms; a press of which no end is heard holds nothing up for longer
const clicks = 100; // ms from the end of a press within which its click comes: at once, or after a tap has been told from a swipe

let press = null;

addEventListener('pointerdown', event => {
  if (!event.isPrimary || event.button !== 0) return;
  press = Promise.withResolvers();
  setTimeout(release, longest, press);
}, {capture: true});

for (const end of ['pointerup', 'pointercancel']) addEventListener(end, () => setTimeout(release, clicks, press), {capture: true});

function release(one) {
  if (one === press) press = null; // and not when the next has begun meanwhile
  one?.resolve();
}

// released waits until nothing is pressed on.
export async function released() {
  while (press) await press.promise;
}
