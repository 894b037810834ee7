/** Turns Docker's framed exec stream into a duplex: stdout and stderr merged in order. */
import { Duplex } from 'node:stream';

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

/** @param listen calls `see` for each payload and `_end` at the end of the output, even if the socket stays open */
export function demuxedDuplex(
  socket: Duplex,
  listen = (see: (bytes: Buffer) => void, _end: () => void): void =>
    void socket.on('data', createDemuxer(see)),
): Duplex {
  const duplex = new Duplex({
    allowHalfOpen: true,
    read: () => socket.resume(),
    write: (chunk: Buffer, _encoding, done) => {
      socket.write(chunk, done);
    },
    final: (done) => {
      socket.end(done);
    },
    destroy: (error, done) => {
      socket.destroy();
      done(error);
    },
  });
  const end = (): void => {
    if (!duplex.readableEnded) duplex.push(null);
  };
  listen((bytes) => {
    if (!duplex.push(bytes)) socket.pause();
  }, end);
  socket.once('end', end);
  socket.once('error', (error) => duplex.destroy(error));
  socket.once('close', end);
  return duplex;
}
