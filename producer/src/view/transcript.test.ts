import type { ArtifactContent } from '@swefarm/shared';
import { expect, test } from 'vitest';
import { describeArtifact } from './transcript.ts';

const content: ArtifactContent = {
  format: 'swefarm-artifact-1',
  rollout_id: 'r1.a__b-1.0',
  attempt: 1,
  instance_id: 'a__b-1',
  trajectory: {
    format: 'swefarm-trajectory-1',
    token_mode: 'text',
    model: 'm',
    endpoint: 'http://h/v1',
    messages: [
      { role: 'system', content: 'You fix bugs.' },
      { role: 'assistant', content: 'Look:\u001b]52;c;evil\u0007' },
      { role: 'user', content: Array.from({ length: 100 }, (_, at) => `line ${at}`).join('\n') },
    ],
    turns: [
      {
        message: 1,
        finish_reason: 'stop',
        model_seconds: 1.5,
        usage: { prompt_tokens: 100, completion_tokens: 20 },
        policy_version: { start: 'v1', end: 'v1' },
        tokens: null,
        commands: [{ command: 'ls -la', exit_code: 0, seconds: 0.01, output_bytes: 12, note: null }],
      },
    ],
    exit_status: 'turn_limit',
  },
  patch: 'diff --git a/x b/x\n',
  report: null,
  test_log: 'the log',
  eval_script: null,
  failure_detail: null,
};
const options = { width: 80, full: false, heading: (text: string) => text };

test('a rollout reads turn by turn, cut and harmless', () => {
  const text = describeArtifact(content, options);
  expect(text).toContain('── turn 1 (1.5 s, 100 + 20 tokens, weights v1) ─');
  expect(text).toContain('$ ls -la  [exit 0, 0.01 s, 12 bytes]');
  expect(text).toContain('… 76 lines, --full shows them …');
  expect(text).toContain('turn_limit after 1 turns');
  expect(text).toContain('diff --git');
  expect(text).not.toContain('\u001b');
  expect(text).not.toContain('the log');
});

test('--full cuts nothing and adds the test log', () => {
  const text = describeArtifact(content, { ...options, full: true });
  expect(text).toContain('line 50');
  expect(text).toContain('the log');
});
