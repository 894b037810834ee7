import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** Runs a program of the host without a shell. Rejects with the output if the program fails. */
export const run = promisify(execFile);
