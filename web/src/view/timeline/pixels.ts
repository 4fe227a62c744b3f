/**
 * Bars of a picture, pixel by pixel. Where all is noise each column is a bar of its own, tens of
 * thousands of them: writing their pixels takes a tenth of the time that as many calls of a canvas do.
 */

/** A picture of `width` times `height` device pixels; all of them are transparent at first. */
export class Pixels {
  readonly #image: ImageData;
  readonly #pixels: Uint32Array;
  readonly #canvas: HTMLCanvasElement;

  /** `canvas` is drawn from, and seen by nobody. */
  constructor(canvas: HTMLCanvasElement, width: number, height: number) {
    if (canvas.width !== width || canvas.height !== height) {
      [canvas.width, canvas.height] = [width, height];
    }
    this.#canvas = canvas;
    this.#image = new ImageData(Math.max(width, 1), Math.max(height, 1));
    this.#pixels = new Uint32Array(this.#image.data.buffer);
  }

  /** Fills columns `from` to before `to`, from `top` to before `bottom`, one row at least. */
  fill(from: number, to: number, top: number, bottom: number, colour: number): void {
    const { width, height } = this.#image;
    const low = Math.min(Math.max(Math.round(top), 0), height);
    const high = Math.min(Math.max(Math.round(bottom), low + 1), height);
    const right = Math.min(to, width);
    for (let row = low; row < high; row++) {
      const at = row * width;
      if (right - from === 1) this.#pixels[at + from] = colour;
      else this.#pixels.fill(colour, at + from, at + right);
    }
  }

  /** Draws them onto `context`. */
  drawTo(context: CanvasRenderingContext2D): void {
    const { width, height } = this.#image;
    this.#canvas.getContext("2d")?.putImageData(this.#image, 0, 0);
    context.save();
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.drawImage(this.#canvas, 0, 0, width, height);
    context.restore();
  }
}

/** A colour of the style sheet (`#c8501e`) as a pixel. */
export function pixelOf(colour: string): number {
  const hex = /^#([0-9a-f]{6})$/i.exec(colour.trim())?.[1] ?? "808080";
  const [red, green, blue] = [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16));
  return new Uint32Array(Uint8Array.of(red ?? 0, green ?? 0, blue ?? 0, 255).buffer)[0] ?? 0;
}
