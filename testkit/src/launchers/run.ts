import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** Runs a program without a shell. If the program fails, rejects with an error that has `stdout` and `stderr`. */
export const run = promisify(execFile);
