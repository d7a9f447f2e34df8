// Whoever presses on something means what is there then. Between that and the click that
// comes of it nothing may be put in its place: the click would be lost, or open another.
const longest = 5000; // ms; a press of which no end is heard holds nothing up for longer

let press = null;

addEventListener('pointerdown', event => {
  if (!event.isPrimary || event.button !== 0) return;
  press ??= Promise.withResolvers();
  setTimeout(release, longest, press);
}, {capture: true});

// The click comes after the event that ends the press, and before any timer.
for (const end of ['pointerup', 'pointercancel']) addEventListener(end, () => setTimeout(release, 0, press), {capture: true});

function release(one) {
  if (!one || one !== press) return;
  press = null;
  one.resolve();
}

// released waits until nothing is pressed on.
export async function released() {
  while (press) await press.promise;
}
