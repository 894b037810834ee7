/** Splits files that are written into a sandbox into those that arguments of commands can carry, and the rest. */
import { isUtf8 } from 'node:buffer';
import type { SandboxFile } from '../runtime.ts';

/** Maximum size of a file that is passed as an argument. The kernel accepts arguments of up to 128 KiB. */
const SMALL_BYTES = 64 * 1024;
/** Maximum size of all arguments of a command. The kernel allows a quarter of the stack limit, which is usually 2 MiB. */
const ARGUMENTS_BYTES = 512 * 1024;
/** Bytes that each file adds for its modes and for the pointers to its arguments. */
const ARGUMENT_OVERHEAD_BYTES = 64;

export const isSmall = ({ content }: SandboxFile): boolean =>
  content.length <= SMALL_BYTES && !content.includes(0) && isUtf8(content);

/** Splits files into batches that fit into one command line. */
export function batchesOf(files: readonly SandboxFile[]): SandboxFile[][] {
  const batches: SandboxFile[][] = [];
  let left = 0;
  for (const file of files) {
    const bytes = file.content.length + Buffer.byteLength(file.path) + ARGUMENT_OVERHEAD_BYTES;
    if (bytes > left) {
      batches.push([]);
      left = ARGUMENTS_BYTES;
    }
    batches.at(-1)?.push(file);
    left -= bytes;
  }
  return batches;
}
