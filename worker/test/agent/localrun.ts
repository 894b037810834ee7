/** Runs scripts of the editor by a local bash, in place of a sandbox's shell. */
import { spawnSync } from 'node:child_process';
import type { RunScript } from '../../src/agent/editor/files.ts';

export const localRun: RunScript = async (script, maxOutputBytes) => {
  const { status, stdout, stderr } = spawnSync('bash', ['-c', 'eval "$(cat)"'], {
    input: script,
    maxBuffer: 64 * 1024 ** 2,
  });
  const output = Buffer.concat([stdout, stderr]);
  const isWhole = output.length <= maxOutputBytes;
  return {
    exitCode: status,
    head: isWhole ? output : output.subarray(0, maxOutputBytes / 2),
    tail: isWhole ? null : output.subarray(-maxOutputBytes / 2),
    outputBytes: output.length,
    seconds: 0,
    note: null,
  };
};
