// Pictures into the memory that the network reads, and boxes of text out of the memory that it wrote.

const MEAN = [0.406, 0.456, 0.485]; // blue, green, red, as the network was trained
const DEVIATION = [0.225, 0.224, 0.229];
const PIXEL_THRESHOLD = 0.3; // a pixel is text above this probability
const BOX_THRESHOLD = 0.5; // a box is kept when the mean probability inside it is above this
const UNCLIP_RATIO = 1.6; // the network is trained on shrunk boxes: grow each by area * ratio / perimeter
const MIN_SIDE = 3;

/** Writes pixels, RGBA of 8 bits, into `input`, 1 x 3 x height x width floats. */
export function writePixels(pixels, input) {
  const plane = pixels.length / 4;
  for (let channel = 0; channel < 3; channel++) {
    const scale = 1 / (255 * DEVIATION[channel]), shift = MEAN[channel] / DEVIATION[channel];
    for (let i = 0; i < plane; i++) {
      input[channel * plane + i] = pixels[4 * i + 2 - channel] * scale - shift;
    }
  }
}

/** Returns boxes { left, top, right, bottom, score } in a map of probabilities, height x width, from the top down. */
export function findBoxes(probability, height, width) {
  const seen = new Uint8Array(height * width);
  const boxes = [];
  for (let start = 0; start < seen.length; start++) {
    if (!seen[start] && probability[start] > PIXEL_THRESHOLD) {
      const found = component(probability, height, width, seen, start);
      const sides = [found.right - found.left + 1, found.bottom - found.top + 1];
      if (Math.min(...sides) >= MIN_SIDE && found.score >= BOX_THRESHOLD) {
        const grown = (sides[0] * sides[1] * UNCLIP_RATIO) / (2 * (sides[0] + sides[1]));
        boxes.push({
          left: found.left - grown, top: found.top - grown,
          right: found.right + 1 + grown, bottom: found.bottom + 1 + grown, score: found.score,
        });
      }
    }
  }
  return boxes.sort((a, b) => a.top - b.top || a.left - b.left);
}

/** Returns the extent and the mean probability of the connected pixels around `start`, and marks them as seen. */
function component(probability, height, width, seen, start) {
  const found = { left: width, top: height, right: 0, bottom: 0, score: 0 };
  const waiting = [start];
  let count = 0;
  seen[start] = 1;
  while (waiting.length) {
    const at = waiting.pop(), x = at % width, y = (at - x) / width;
    found.left = Math.min(found.left, x);
    found.right = Math.max(found.right, x);
    found.top = Math.min(found.top, y);
    found.bottom = Math.max(found.bottom, y);
    found.score += probability[at];
    count += 1;
    for (let v = Math.max(y - 1, 0); v <= Math.min(y + 1, height - 1); v++) {
      for (let u = Math.max(x - 1, 0); u <= Math.min(x + 1, width - 1); u++) {
        const next = v * width + u;
        if (!seen[next] && probability[next] > PIXEL_THRESHOLD) {
          seen[next] = 1;
          waiting.push(next);
        }
      }
    }
  }
  found.score /= count;
  return found;
}
