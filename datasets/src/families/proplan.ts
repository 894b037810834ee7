/** The evaluation of SWE-bench Pro: a script that ignores failures, and a parser that comes with the instance. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { proProgram } from '@swefarm/grading';
import { heredoc } from '../fields/bash.ts';
import type { InstanceDraft } from './family.ts';

export type ProTexts = {
  runScript: string;
  parser: string;
  /** The Dockerfiles of the base and of the instance; their ENV lines are exported. */
  dockerfiles: readonly string[];
};

type Plan = NonNullable<InstanceDraft['plan']>;

/** Reads the texts of an instance from the folders of the dataset's repository, or names the missing file. */
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

/** Makes the folder that upstream mounts, and requires the commit of the tests, without which no patch could be resolved. */
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

/** The part of the plan that follows from the scripts. */
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
      // Unquoted, as upstream: the script gets the same argument.
      `bash /workspace/run_script.sh ${selected.join(',')} >/workspace/stdout.log 2>/workspace/stderr.log`,
      'tail -c 100000 /workspace/stdout.log /workspace/stderr.log',
      '',
    ].join('\n'),
    files: ['/workspace/stdout.log', '/workspace/stderr.log'],
    outcomes: proProgram(texts.parser),
    verdict: { rule: 'subset' },
  };
}

/** `ENV A=b` and `ENV A b` (which upstream breaks) become exports; the continuation of a line is dropped. */
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
