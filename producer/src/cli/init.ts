/** `swefarm init`: writes a run configuration that explains its settings. On a terminal the command asks for the most important ones. */
import { writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline/promises';
import {
  flagKey,
  flagName,
  RUN_FLAGS,
  type RunFlagValues,
  readFlag,
  recordFromSettings,
  requireKnownKeys,
  runSettings,
  type SettingsTree,
} from '@swefarm/runs';
import { asksPolicy, errorMessage, parseYaml, UsageError } from '@swefarm/shared';
import { renderRunFile } from '../view/runfile.ts';
import { command, defaulted, flag, text } from './declare.ts';
import { RUN_SETTINGS_FLAGS } from './options.ts';
import { listenForStop } from './stop.ts';
import { printStatus, quoted } from './terminal.ts';

/** Questions by the flag that answers the question, in the order of asking. */
const QUESTIONS: readonly { flag: string; question: string; usual: string; ofPolicy?: true }[] = [
  { flag: '--agent', question: 'Agent (mini asks a model; golden tests the dataset)', usual: 'mini' },
  {
    flag: '--policy-url',
    question: 'OpenAI-compatible endpoint',
    usual: 'http://localhost:8000/v1',
    ofPolicy: true,
  },
  { flag: '--model', question: 'Name of the model at the endpoint', usual: '', ofPolicy: true },
  { flag: '--group-size', question: 'Rollouts of each instance', usual: '1' },
];

export const init = command({
  options: {
    '--output <file>': defaulted(text('file to write'), 'run.yaml'),
    '--force': flag('replace the file if it exists'),
    ...RUN_SETTINGS_FLAGS,
  },
  example: 'swefarm init --policy-url http://localhost:8000/v1 --model MODEL --output run.yaml',
  async run({ output, force, run: flags }) {
    const { draining: signal } = listenForStop();
    const answered = process.stdin.isTTY ? await asked(flags, signal) : flags;
    const usage = `swefarm rollout --dataset rows.jsonl --run-config ${quoted(output)} --output results.jsonl`;
    // A span counts from the start of a run.
    const { deadline } = answered;
    const settings = { ...runSettings({ flags: answered }), ...(deadline && { deadline_at: deadline }) };
    const rendered = renderRunFile(settings, RUN_FLAGS, usage);
    requireUsable(rendered, output);
    write(output, rendered, force);
    printStatus(`swefarm: wrote ${output}\nnext: ${usage}`);
  },
});

/** Asks for the settings that have no flag on the command line. */
async function asked(flags: RunFlagValues, signal: AbortSignal): Promise<RunFlagValues> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    let answers = flags;
    for (const { flag: name, question, usual, ofPolicy } of QUESTIONS) {
      const own = RUN_FLAGS.find((one) => flagName(one) === name);
      if (own === undefined || answers[flagKey(own)] !== undefined) continue;
      if (ofPolicy && !asksPolicy(answers.agent)) continue;
      const ask = () => terminal.question(`${question}${usual === '' ? '' : ` [${usual}]`}: `, { signal });
      for (let answer = await ask(); ; answer = await ask()) {
        const given = answer.trim() || usual;
        const problem =
          given === '' ? 'expected a value' : problemOf(() => readFlag(own, own.many ? [given] : given));
        if (problem === null) {
          answers = { ...answers, [flagKey(own)]: own.many ? [given] : given };
          break;
        }
        printStatus(problem);
      }
    }
    return answers;
  } finally {
    terminal.close();
  }
}

function problemOf(check: () => unknown): string | null {
  try {
    check();
    return null;
  } catch (error) {
    return errorMessage(error);
  }
}

/** Checks the file as `rollout` does, without a dataset. Throws UsageError. */
function requireUsable(rendered: string, path: string): void {
  const settings = parseYaml(rendered) as SettingsTree;
  requireKnownKeys(path, settings ?? {});
  recordFromSettings(settings ?? {}, 'init', { path, sha256: '', instances: [] }, null);
}

function write(path: string, content: string, force: boolean): void {
  try {
    writeFileSync(path, content, { flag: force ? 'w' : 'wx' });
  } catch (error) {
    const exists = (error as NodeJS.ErrnoException).code === 'EEXIST';
    const reason = exists
      ? 'exists: choose another --output, or replace it with --force'
      : errorMessage(error);
    throw new UsageError(`${path}: ${reason}`, { cause: error });
  }
}
