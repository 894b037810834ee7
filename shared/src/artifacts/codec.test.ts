import { gunzipSync, gzipSync } from 'node:zlib';
import { bareArtifact, bareTrajectory } from '@swefarm/testkit';
import { describe, expect, test } from 'vitest';
import type { Line, Turn, TurnExperts } from '../records/trajectory.ts';
import { type ArtifactContent, decodeArtifact, encodeArtifact } from './codec.ts';
import { inPieces } from './pieces.ts';

const EMPTY = bareArtifact();

/** Returns a generator of random numbers with this seed. */
function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const experts = (random: () => number): TurnExperts => ({
  ...{ dtype: 'uint8', layers: 4, top_k: 2, start: Math.floor(random() * 100) },
  rows: Int8Array.from({ length: 8 * Math.floor(random() * 8000) }, () => random() * 256 - 128),
});

function randomTurn(random: () => number): Turn {
  const ids = (length: number) => Int32Array.from({ length }, () => Math.floor((random() - 0.5) * 2 ** 32));
  const generated = Math.floor(random() * 50);
  return {
    message: Math.floor(random() * 100),
    finish_reason: random() < 0.5 ? null : 'stop',
    model_seconds: random(),
    usage: null,
    policy_version: { start: null, end: '7' },
    tokens: {
      prefix_length: Math.floor(random() * 1000),
      prompt_suffix: ids(Math.floor(random() * 50)),
      generation: ids(generated),
      log_probs: Float32Array.from({ length: generated }, () =>
        random() < 0.1 ? -Infinity : -random() * 20,
      ),
      // May be longer than one piece of the encoder.
      ...(random() < 0.5 ? {} : { routed_experts: experts(random) }),
    },
    commands: [],
  };
}

const randomLines = (random: () => number, text: () => string): Line[] =>
  Array.from({ length: Math.floor(random() * 3) }, (_, at) => ({
    ...{ id: `L${at + 2}`, kind: 'subagent', from: null, masked: null },
    messages: [{ role: 'user', content: text() }],
    turns: Array.from({ length: Math.floor(random() * 3) }, () => randomTurn(random)),
  }));

describe('encoded content is decoded unchanged', () => {
  test.each(Array.from({ length: 25 }, (_, seed) => seed))('trajectory of seed %d', async (seed) => {
    const random = randomFrom(seed);
    const text = () =>
      String.fromCodePoint(
        ...Array.from({ length: 40 }, () => Math.floor(random() * 0xd7ff)),
        0x1f600,
        0,
        0xfffd,
      );
    const content: ArtifactContent = {
      ...EMPTY,
      patch: text(),
      test_log: text(),
      trajectory: {
        ...bareTrajectory({ token_mode: 'echo', model: text() }),
        messages: [
          { role: 'user', content: text() },
          { role: 'assistant', content: '{"dtype":"int32","base64":"AAAA"}', reasoning_content: text() },
        ],
        turns: Array.from({ length: Math.floor(random() * 6) }, () => randomTurn(random)),
        ...(random() < 0.5 ? {} : { line: 'L1', lines: randomLines(random, text) }),
      },
    };
    expect(await decodeArtifact(await encodeArtifact(content))).toEqual(content);
  });

  test('typed arrays keep their type, also as views into a larger buffer', async () => {
    const all = Int32Array.from([1, 2, 3, 4]);
    const turn = randomTurn(() => 0.5);
    const tokens = {
      prefix_length: 0,
      prompt_suffix: all.subarray(1, 3),
      generation: new Int32Array(),
      log_probs: new Float32Array(),
    };
    const trajectory = { turns: [{ ...turn, tokens }] } as unknown as ArtifactContent['trajectory'];
    const back = await decodeArtifact(await encodeArtifact({ ...EMPTY, trajectory }));
    expect(back.trajectory?.turns[0]?.tokens?.prompt_suffix).toEqual(Int32Array.from([2, 3]));
    expect(back.trajectory?.turns[0]?.tokens?.log_probs).toBeInstanceOf(Float32Array);
  });
});

test('an artifact of an earlier version has no lines, and an earlier reader finds the main line', async () => {
  const turns = [randomTurn(() => 0.5)];
  const lines = randomLines(() => 0.5, String);
  const trajectory = { turns, lines } as unknown as ArtifactContent['trajectory'];
  const blob = await encodeArtifact({ ...EMPTY, trajectory });
  const { lines: stored, ...earlier } = JSON.parse(gunzipSync(blob).toString()).trajectory;
  expect(stored).toHaveLength(lines.length);
  const old = gzipSync(JSON.stringify({ ...EMPTY, trajectory: earlier }));
  expect((await decodeArtifact(old)).trajectory).toEqual({ turns });
});

describe('a log', () => {
  const text = `größe → ${'漢字 😀 \u0000\n"\\'.repeat(20_000)}`;
  test('of bytes is decoded as text of any size', async () => {
    expect(await decodeArtifact(await encodeArtifact({ ...EMPTY, test_log: Buffer.from(text) }))).toEqual({
      ...EMPTY,
      test_log: text,
    });
  });
  test('that is no UTF-8 is read with replacements', async () => {
    const back = await decodeArtifact(
      await encodeArtifact({ ...EMPTY, test_log: Buffer.from([0x61, 0xff, 0xe6]) }),
    );
    expect(back.test_log).toBe('a\ufffd\ufffd');
  });
});

test('surrogate pairs at the boundaries of pieces stay intact', async () => {
  const patch = `x${'😀'.repeat(100_000)}`;
  expect((await decodeArtifact(await encodeArtifact({ ...EMPTY, patch }))).patch).toBe(patch);
});

test('gzip of several members is read as a whole', async () => {
  const text = JSON.stringify({ ...EMPTY, patch: 'p'.repeat(300_000) });
  const blob = Buffer.concat([gzipSync(text.slice(0, 200_000)), gzipSync(text.slice(200_000))]);
  expect((await decodeArtifact(blob)).patch).toHaveLength(300_000);
});

test('the pieces are the JSON of the whole value', () => {
  const value = {
    empty: {},
    none: [],
    left: undefined,
    list: [undefined, null, [1], { a: 'é' }],
    deep: [[[[[[[[[[[[1, { b: 2 }]]]]]]]]]]]],
  };
  expect(Buffer.concat([...inPieces(value)]).toString()).toBe(JSON.stringify(value));
});

test.each<[string, Buffer, string?]>([
  ['no gzip', Buffer.from('x')],
  ['no JSON', gzipSync('{')],
  ['another format', gzipSync('{"format":"other"}')],
  ['another version', gzipSync('{"format":"swefarm-artifact-2"}'), 'artifact_version'],
  ['null', gzipSync('null')],
  ['a cut blob', gzipSync(JSON.stringify(EMPTY)).subarray(0, 40)],
])('%s is refused', async (_name, blob, code = 'bad_artifact') => {
  await expect(decodeArtifact(blob)).rejects.toMatchObject({ code });
});

test('artifacts of a task come back with their bytes', async () => {
  const files = [
    { path: 'a', mode: 0o755, content: Int8Array.of(-1, 0) },
    { path: 'empty', content: new Int8Array() },
    { path: 'link', link: 'a' },
    { path: 'folder' },
  ];
  const one = { source: '/a', destination: 'a', exclude: ['*.o'], type: 'directory', status: 'ok' } as const;
  const collected = [{ ...one, exclude: ['*.o'], files }];
  expect((await decodeArtifact(await encodeArtifact({ ...EMPTY, collected }))).collected).toEqual(collected);
});

test('outputs of an agent come back as text or as bytes', async () => {
  const outputs = [
    { name: 'output', content: 'done\n', bytes: 5 },
    { name: 'log/state.db', content: Int8Array.of(-1, 0, 127), bytes: 900 },
  ];
  expect((await decodeArtifact(await encodeArtifact({ ...EMPTY, outputs }))).outputs).toEqual(outputs);
});
