/** `swefarm score`: asks a verifier for a score of each rollout of an output. */
import { readFileSync } from 'node:fs';
import { withNamedPictures } from '@swefarm/policy';
import { createSemaphore, errorMessage, type Farm, SwefarmError, UsageError } from '@swefarm/shared';
import type { OutputLine } from '@swefarm/trajectories';
import {
  artifactOfLine,
  countNames,
  createVerifier,
  DEFAULT_PROMPT,
  openScores,
  readLines,
  type ScoreFile,
  scoresPath,
  VERIFIER_FORMS,
  type Verifier,
} from '@swefarm/trajectories';
import { choice, command, defaulted, required, text, whole } from './declare.ts';
import { EXIT, type ExitCode } from './exit.ts';
import { lazyFarm } from './farm.ts';
import { apiKeyOf, FARM, type FarmValues, producerConfig } from './options.ts';
import { listenForStop } from './stop.ts';
import { printStatus } from './terminal.ts';

export const score = command({
  arguments: { '<output>': 'an output file; its trajectories are read from the addresses in its lines' },
  options: {
    '--verifier-url <url>': required(
      text('base URL of an OpenAI-compatible server, or the address of an HTTP scorer'),
    ),
    '--verifier-form <form>': defaulted(
      choice(
        'chat, completions: the log-probabilities of yes and no; http: {score} for a posted rollout',
        VERIFIER_FORMS,
      ),
      'chat',
    ),
    '--model <name>': defaulted(text('the model, as the verifier serves it'), ''),
    '--prompt <file>': text('the question, with {trajectory} and {patch} (default: a plain one)'),
    '--api-key-env <variable>': text('environment variable with the key of the verifier'),
    '--concurrency <n>': defaulted(whole('questions at once'), 8),
    '--timeout <seconds>': defaulted(whole('longest wait for an answer'), 600),
    '--output <file>': text('file for the scores (default: OUTPUT.scores.jsonl beside it)'),
    ...FARM,
  },
  example: 'swefarm score results.jsonl --verifier-url http://localhost:8000/v1 --model VERIFIER',
  run(o, { output: path }) {
    const { verifierForm: form, model } = o;
    if (form !== 'http' && model === '')
      throw new UsageError(`--verifier-form ${form} asks a model: add --model NAME`);
    const verifier = createVerifier(form, {
      url: o.verifierUrl.replace(/\/+$/, ''),
      model,
      key: apiKeyOf(o.apiKeyEnv),
      prompt: o.prompt === undefined ? DEFAULT_PROMPT : readPrompt(o.prompt),
      timeoutMs: o.timeout * 1000,
    });
    return scoreOutput(path, verifier, o);
  },
});

type ScoreValues = FarmValues & { output: string | undefined; concurrency: number };

async function scoreOutput(path: string, verifier: Verifier, o: ScoreValues): Promise<ExitCode> {
  const stop = listenForStop(() => printStatus('\nswefarm: stopping; the same command continues'));
  await using late = lazyFarm(() => producerConfig(o));
  const scores = o.output ?? scoresPath(path);
  await using file = await openScores(scores, verifier.name);
  const failures: string[] = [];
  const counts = { scored: 0, known: 0, empty: 0 };
  const slots = createSemaphore(Math.max(1, o.concurrency));
  const running = new Set<Promise<void>>();
  const scoreLine = async (line: OutputLine): Promise<void> => {
    try {
      await scoreOne(line, { path, verifier, file, farm: late.farm }, stop.draining);
      counts.scored += 1;
    } catch (error) {
      // Without the rollout id, equal failures are counted together.
      const reason = errorMessage(error).replaceAll(line.rollout_id, 'ROLLOUT');
      if (!stop.draining.aborted) failures.push(reason);
    }
  };
  for await (const line of readLines(path)) {
    if (stop.draining.aborted) break;
    if (line.outcome !== 'judged') counts.empty += 1;
    else if (file.known.has(line.rollout_id)) counts.known += 1;
    else {
      const release = await slots.acquire();
      if (stop.draining.aborted) break;
      const work = scoreLine(line).finally(() => {
        release();
        running.delete(work);
      });
      running.add(work);
    }
  }
  await Promise.all(running);
  printStatus(
    `${counts.scored} rollouts scored by ${verifier.name}, ${counts.known} had a score, ${counts.empty} without a verdict are left out: ${scores}`,
  );
  for (const [reason, times] of Object.entries(countNames(failures)))
    printStatus(`${times} without a score: ${reason}`);
  if (stop.draining.aborted) return EXIT.interrupted;
  if (failures.length === 0) return EXIT.allJudged;
  return counts.scored + counts.known > 0 ? EXIT.someNotJudged : EXIT.unusable;
}

/** `path`: the scored output; `file`: where the scores go. */
type Scoring = { path: string; verifier: Verifier; file: ScoreFile; farm: () => Promise<Farm> };

async function scoreOne(
  line: OutputLine,
  { path, verifier, file, farm }: Scoring,
  signal: AbortSignal,
): Promise<void> {
  const content = await artifactOfLine(line, path, farm);
  if (!content?.trajectory) {
    throw new SwefarmError('no_trajectory', 'the rollout has no trajectory');
  }
  const { rollout_id, instance_id } = line;
  const messages = content.trajectory.messages.map(withNamedPictures).map(({ role, content: text }) => ({
    role,
    content: text ?? null,
  }));
  const given = await verifier.score(
    { rollout_id, instance_id, messages, patch: content.patch ?? line.patch },
    signal,
  );
  await file.append({ rollout_id, instance_id, score: given, verifier: verifier.name });
}

function readPrompt(path: string): string {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new UsageError(`--prompt ${path}: ${(error as Error).message}`, { cause: error });
  }
  if (text.includes('{trajectory}') || text.includes('{patch}')) return text;
  throw new UsageError(
    `--prompt ${path}: has neither {trajectory} nor {patch}: every rollout would get the same question`,
  );
}
