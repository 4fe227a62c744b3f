/** Blocks: base64 of deflated bytes ("Blocks" in FORMAT.md). */

/** The bytes of a block. */
export async function inflate(text: string): Promise<Uint8Array> {
  const packed = new Blob([fromBase64(text)]);
  const stream = packed.stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text.trim());
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}
