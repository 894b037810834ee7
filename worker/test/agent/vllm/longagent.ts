/**
 * An agent that goes on for hundreds of turns in the form of mini-swe-agent's recorded requests. It gives answers back as mini-swe-agent does,
 * leaves out answers whose calls cannot be read, and lets the model sample any words.
 */
import { openEndpoint } from '@swefarm/recorder/test/endpoint.ts';
import { readRecorded } from '@swefarm/recorder/test/requests/recorded.ts';
import type { Message } from '@swefarm/shared';
import type { Guide } from './guide.ts';
import { must } from './play.ts';
import { openRollout } from './recordedrollout.ts';
import type { Played } from './replay.ts';
import { callingForm } from './sampledtext.ts';

/** Every so many answers the model may sample anything, which is almost never a call. */
const FREE_EVERY = 10;

export async function playLong(guide: Guide, turns: number): Promise<Played> {
  const [first] = readRecorded('mini-swe-agent');
  const body = first?.body as { messages: Message[] };
  let turn = 0;
  const isFree = (): boolean => turn % FREE_EVERY === FREE_EVERY - 1;
  using rollout = openRollout(guide, () => (isFree() ? null : { form: callingForm('bash') }));
  await using endpoint = await openEndpoint(rollout.options);
  const messages = [...body.messages];
  for (; turn < turns; turn++) {
    const reply = await endpoint.send(first?.path ?? '', { ...body, messages });
    must(reply.status === 200, `turn ${turn + 1}: HTTP ${reply.status} ${reply.text.slice(0, 200)}`);
    const [choice] = reply.json().choices as [{ message: Message }];
    const { refusal, ...answer } = choice.message;
    const calls = answer.tool_calls ?? [];
    must(isFree() || calls.length > 0, `turn ${turn + 1} has no call: ${answer.content}`);
    if (calls.length === 0) messages.push({ role: 'user', content: `No call was found (${turn}).` });
    else {
      messages.push({ ...answer, provider_specific_fields: { refusal } });
      messages.push(...calls.map((call, at) => resultOf(call, turn, at)));
    }
  }
  return { trajectory: endpoint.recorder.trajectory(), answers: rollout.answers };
}

const resultOf = ({ id }: { id: string }, turn: number, at: number): Message => ({
  ...{ role: 'tool', tool_call_id: id },
  content: JSON.stringify({
    returncode: at,
    output: `turn ${turn}\n\té 日本語 </tool_call> <|im_end|>`.slice(0, 9 + turn),
  }),
});
