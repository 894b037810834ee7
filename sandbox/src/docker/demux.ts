/** Reads Docker's framed exec stream: stdout and stderr merged in order. */
const HEADER_BYTES = 8;

export function createDemuxer(onData: (bytes: Buffer) => void): (chunk: Buffer) => void {
  const header = Buffer.alloc(HEADER_BYTES);
  let have = 0;
  let left = 0;
  return (chunk) => {
    let at = 0;
    while (at < chunk.length) {
      if (left > 0) {
        const part = chunk.subarray(at, at + left);
        left -= part.length;
        at += part.length;
        onData(part);
        continue;
      }
      const part = chunk.subarray(at, at + HEADER_BYTES - have);
      part.copy(header, have);
      have += part.length;
      at += part.length;
      if (have === HEADER_BYTES) {
        left = header.readUInt32BE(4);
        have = 0;
      }
    }
  };
}
