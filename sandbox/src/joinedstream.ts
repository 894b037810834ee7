/** Joins the output and the input of a process to one stream. */
import { Duplex, type Readable, type Writable } from 'node:stream';

/**
 * Returns a stream that ends when the output ends. Destroying the stream destroys both parts, and a broken output destroys the stream.
 * @param listen calls `see` for each part of the output, and `end` if the output of the process ends before the stream `output`
 */
export function joinedStream(
  output: Readable,
  input: Writable | null,
  listen: (see: (bytes: Buffer) => void, end: () => void) => void = (see) => void output.on('data', see),
): Duplex {
  const stream = new Duplex({
    read: () => output.resume(),
    write: (chunk: Buffer, encoding, done) => {
      if (input?.writable) input.write(chunk, encoding, done);
      else done(new Error('the process has ended'));
    },
    final: (done) => {
      if (input) input.end(done);
      else done();
    },
    destroy: (error, done) => {
      input?.destroy();
      output.destroy();
      done(error);
    },
  });
  const end = (): void => {
    if (!stream.readableEnded) stream.push(null);
  };
  listen((bytes) => {
    if (!stream.push(bytes)) output.pause();
  }, end);
  output.once('error', (error) => stream.destroy(error));
  output.once('close', end);
  return stream;
}
