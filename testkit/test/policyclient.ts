/** A client of the scripted policy over loopback, and a script for it. */
import type { ScriptedPolicy, ScriptInput } from '../src/index.ts';

type Message = { role: string; content: string | null; [more: string]: unknown };
export type Completion = {
  choices: [
    {
      message: Message & { tool_calls?: { function: { name: string; arguments: string } }[] };
      finish_reason: string;
      token_ids: number[] | null;
      logprobs: { content: { token: string; logprob: number; bytes: number[] }[] } | null;
    },
  ];
  usage: { prompt_tokens: number; completion_tokens: number; total_tokens: number };
  prompt_token_ids: number[] | null;
};

export const bash = {
  type: 'function',
  function: { name: 'bash', parameters: { properties: { command: {} } } },
};
export const submit = {
  type: 'function',
  function: { name: 'submit_solution', parameters: { properties: {} } },
};
export const script: ScriptInput = {
  conversations: [
    {
      match: 'fix',
      variants: [
        [{ think: 'Hm.', command: 'ls -la' }, { command: 'cat x' }, { submit: true }],
        [{ submit: 'a patch' }],
      ],
    },
    { match: 'odd', variants: [[{ tool_json: 'invalid' }], [{ command: 'ls', finish_reason: 'length' }]] },
    { match: 'flaky', variants: [[{ command: 'ls', fault: { kind: 'unavailable', times: 2 } }]] },
    { match: 'slow', variants: [[{ command: 'ls', delay_ms: 5000 }]] },
  ],
};

export const opening = (text = 'fix this'): Message[] => [
  { role: 'system', content: 'You repair.' },
  { role: 'user', content: text },
];

export function post(
  policy: ScriptedPolicy,
  body: object,
  rollout?: string,
  signal?: AbortSignal,
): Promise<Response> {
  return fetch(`${policy.url}/chat/completions`, {
    method: 'POST',
    body: JSON.stringify({ model: 'm', ...body }),
    headers: { 'content-type': 'application/json', ...(rollout && { 'x-swefarm-rollout': rollout }) },
    ...(signal && { signal }),
  });
}
export const ask = async (policy: ScriptedPolicy, body: object, rollout?: string) =>
  (await (await post(policy, body, rollout)).json()) as Completion;
