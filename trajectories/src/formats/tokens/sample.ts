/**
 * Makes the sample of a rollout for a trainer. Token ids and log-probabilities are base64 of little-endian numbers, which a client reads without
 * parsing. A sample of 60,000 tokens has about 400 KB. The trajectory as JSON is larger: it has the ids as text, and all messages.
 */
import { isTruncated, LineKind, Result, type Trajectory, type TurnExperts } from '@swefarm/shared';
import { z } from 'zod';
import type { LineChoice } from '../../export/lines.ts';
import { type Segment, segmentsOf, type TokenSequence } from './sequences.ts';

const packed = (type: string) => z.string().meta({ description: `base64 of ${type}, little-endian` });
const at = z.number().int();

const SampleSegment = z.object({
  line: z.string(),
  kind: LineKind,
  weight: z.number().meta({ description: 'the weights of all segments of a rollout add up to 1' }),
  prompt_ids: packed('int32').meta({
    description: 'base64 of int32: all tokens before the first answer of the segment',
  }),
  response_ids: packed('int32'),
  log_probs: packed('float32').meta({
    description: 'base64 of float32: one number for each sampled token, in order',
  }),
  turns: z.array(z.tuple([at, at, z.string().nullable(), z.string().nullable()])).meta({
    description: 'answers: tokens [start, stop) of the response, finish reason, version at the end',
  }),
  spans: z
    .array(z.tuple([z.string(), at, at]))
    .meta({ description: 'version that sampled the tokens [start, stop) of the response' }),
  routed_experts: z
    .array(
      z.object({
        start: at.meta({ description: 'token of the first row, from the start of the prompt' }),
        dtype: z.string(),
        layers: at,
        top_k: at,
        rows: packed('dtype'),
      }),
    )
    .optional()
    .meta({
      description: 'experts of a mixture-of-experts model, on request; later rows replace earlier ones',
    }),
});

export const SampleBody = z.object({
  result: Result,
  truncated: z.boolean().meta({ description: 'a token limit cut the rollout' }),
  segments: z
    .array(SampleSegment)
    .meta({ description: 'the main line first. A line has several segments if its prompts do not continue' }),
  missing: z.string().nullable().meta({ description: 'why there are no segments; null: there are some' }),
});
export type SampleBody = z.infer<typeof SampleBody>;

/** The lines and experts that a caller requests with a sample. */
export type SampleChoice = { lines: LineChoice; experts: boolean };

/** Returns the sample. @param trajectory null: the rollout has none, or its artifact was removed */
export function sampleOf(
  result: Result,
  trajectory: Trajectory | null,
  { lines, experts }: SampleChoice,
): SampleBody {
  const found = trajectory === null ? [] : segmentsOf(trajectory, lines);
  const segments = found.map((segment) => ({
    ...segmentBody(segment),
    ...(experts ? { routed_experts: segment.sequence.experts.map(expertsBody) } : {}),
  }));
  const without = trajectory === null ? 'no trajectory is stored' : 'the policy returned no token ids';
  return { result, truncated: isTruncated(result), segments, missing: segments.length > 0 ? null : without };
}

function segmentBody({ sequence, facts }: Segment): z.infer<typeof SampleSegment> {
  const { ids, logProbs, answers } = sequence;
  // A segment has at least one answer.
  const first = answers[0]?.start ?? ids.length;
  const sampled = answers.map(({ start, stop }) => logProbs.subarray(start, stop));
  return {
    line: facts.line,
    kind: facts.line_kind,
    weight: facts.line_weight,
    prompt_ids: base64([ids.subarray(0, first)]),
    response_ids: base64([ids.subarray(first)]),
    log_probs: base64(sampled),
    turns: answers.map(({ start, stop, ...one }) => [
      start - first,
      stop - first,
      one.finish_reason,
      one.version,
    ]),
    spans: spansIn(sequence).map(([version, start, stop]) => [version, start - first, stop - first]),
  };
}

const expertsBody = ({ rows, ...experts }: TurnExperts) => ({ ...experts, rows: base64([rows]) });

/** Returns the token ranges of the answers, split where the version changes. Omits tokens of unknown versions. */
function spansIn({
  answers,
  versions,
  names,
}: TokenSequence): [version: string, start: number, stop: number][] {
  const spans: [string, number, number][] = [];
  for (const { start, stop } of answers) {
    for (let from = start, to = start; from < stop; from = to) {
      const version = versions[from];
      while (to < stop && versions[to] === version) to += 1;
      const name = names[version ?? -1];
      if (name !== undefined) spans.push([name, from, to]);
    }
  }
  return spans;
}

/** Encodes numbers as base64, little-endian as on all platforms of the farm. */
const base64 = (pieces: readonly ArrayBufferView[]): string =>
  Buffer.concat(
    pieces.map(({ buffer, byteOffset, byteLength }) => new Uint8Array(buffer, byteOffset, byteLength)),
  ).toString('base64');
