/** Makes the evaluation plan of SWE-bench Pro from the run script and the log parser of an instance. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { proProgram } from '@swefarm/grading';
import { heredoc } from '../fields/bash.ts';
import type { InstanceDraft } from './family.ts';

export type ProTexts = {
  runScript: string;
  parser: string;
  /** Texts of the Dockerfiles of base and instance. Their ENV lines become exports. */
  dockerfiles: readonly string[];
};

type Plan = NonNullable<InstanceDraft['plan']>;

/** Reads the texts of an instance from the folders of the dataset's repository, or returns the path of a missing file. */
export function textsOfFolder(folder: string, id: string): { texts: ProTexts } | { missing: string } {
  const paths = [
    `run_scripts/${id}/run_script.sh`,
    `run_scripts/${id}/parser.py`,
    `dockerfiles/base_dockerfile/${id}/Dockerfile`,
    `dockerfiles/instance_dockerfile/${id}/Dockerfile`,
  ];
  const texts: string[] = [];
  for (const path of paths) {
    try {
      texts.push(readFileSync(join(folder, path), 'utf8'));
    } catch {
      return { missing: join(folder, path) };
    }
  }
  const [runScript = '', parser = '', ...dockerfiles] = texts;
  return { texts: { runScript, parser, dockerfiles } };
}

/** Returns the steps before the patch. Upstream mounts /workspace, and the tests need the commit that `lastLine` names. */
export function beforeSteps(base: string, lastLine: string): NonNullable<Plan['before']> {
  const fix = /\b[0-9a-f]{40}\b/.exec(lastLine)?.[0];
  return [
    { name: 'make /workspace', script: 'mkdir -p /workspace' },
    { name: 'check out the base commit', script: `git reset --hard ${base} && git checkout ${base}` },
    ...(fix === undefined
      ? []
      : [{ name: 'find the commit of the tests', script: `git cat-file -e '${fix}^{commit}'` }]),
  ];
}

/** Returns the part of the plan that depends on the scripts of the instance. */
export function proPlan(
  selected: readonly string[],
  lastLine: string,
  texts: ProTexts,
): Pick<Plan, 'unapplied' | 'blank' | 'after' | 'script' | 'files' | 'outcomes' | 'verdict'> {
  return {
    unapplied: 'tests_run',
    blank: 'tests_run',
    after: [{ name: 'bring the test files', script: `${exportsOf(texts)}${lastLine}`, may_fail: true }],
    script: [
      '#!/bin/bash',
      heredoc('cat >/workspace/run_script.sh', texts.runScript),
      `${exportsOf(texts)}cd /app`,
      // The list is unquoted as in upstream's command, so that the script gets the same arguments.
      `bash /workspace/run_script.sh ${selected.join(',')} >/workspace/stdout.log 2>/workspace/stderr.log`,
      'tail -c 100000 /workspace/stdout.log /workspace/stderr.log',
      '',
    ].join('\n'),
    files: ['/workspace/stdout.log', '/workspace/stderr.log'],
    outcomes: proProgram(texts.parser),
    verdict: { rule: 'subset' },
  };
}

/** Converts `ENV A=b` and `ENV A b` to exports (upstream converts the second form wrongly). Drops continuation lines. */
const exportsOf = ({ dockerfiles }: ProTexts): string =>
  dockerfiles
    .flatMap((text) => text.split('\n'))
    .map((line) => line.trim())
    .filter((line) => line.startsWith('ENV'))
    .map((line) => {
      const rest = line.slice('ENV'.length).trim().replace(/\\$/, '').trim();
      const spaced = /^([A-Za-z_]\w*)\s+([^=].*)$/.exec(rest);
      return `export ${spaced ? `${spaced[1]}=${JSON.stringify(spaced[2])}` : rest}\n`;
    })
    .join('');
