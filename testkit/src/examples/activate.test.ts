import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const ACTIVATE = join(import.meta.dirname, 'activate.sh');
const bash = (script: string) =>
  execFileSync('bash', ['--noprofile', '--norc', '-uc', script, 'bash', ACTIVATE], {
    encoding: 'utf8',
    env: { PATH: '/opt/miniconda3/envs/old/bin:/usr/bin:/bin' },
  }).trim();

test('an unknown environment is an error and changes nothing, also under set -u', () => {
  const output = bash('. "$1" nothing-here 2>&1; echo "$? $PATH"; export -p | grep -c CONDA || true');
  expect(output).toMatch(
    /^EnvironmentNameNotFound: .*\n1 \/opt\/miniconda3\/envs\/old\/bin:\/usr\/bin:\/bin\n0$/,
  );
});

test('other commands of conda are refused', () => {
  expect(bash('. "$1" x 2>/dev/null; conda install y 2>&1; echo $?')).toMatch(/only "activate".*\n2$/);
});
