/** Plays the recorded requests of real agents against a recorder, with the ids that the recorder gave in place of the recorded ones. */
import { openEndpoint } from '@swefarm/recorder/test/endpoint.ts';
import { type Recorded, readRecorded } from '@swefarm/recorder/test/requests/recorded.ts';
import { RECORDED_LINES, summaryOf } from '@swefarm/recorder/test/requests/recordedlines.ts';
import type { Trajectory } from '@swefarm/shared';
import type { Answered, Guide } from './guide.ts';
import { must } from './play.ts';
import { openRollout } from './recordedrollout.ts';
import { sampledText } from './sampledtext.ts';

export type Played = { trajectory: Trajectory; answers: readonly Answered[] };

/** Plays one recorded run. The model samples the text of the recorded answers. */
export async function replay(guide: Guide, run: string): Promise<Played> {
  let recorded: Recorded | undefined;
  using rollout = openRollout(guide, () =>
    recorded?.answer ? { text: sampledText(recorded.answer.message) } : null,
  );
  await using endpoint = await openEndpoint(rollout.options);
  const given = new Map<string, string>();
  for (recorded of readRecorded(run)) {
    const { path, headers, body, answer } = recorded;
    const sent = withIds({ ...(body as object), stream: false }, given);
    const reply = await endpoint.send(path, sent, { headers });
    must(reply.status === 200, `${run}: HTTP ${reply.status} ${reply.text.slice(0, 200)}`);
    const own = idsIn(reply.json());
    const calls = answer?.message.tool_calls ?? [];
    must(own.calls.length === calls.length, `${run}: ${own.calls.length} of ${calls.length} calls were read`);
    for (const [index, { id }] of calls.entries()) given.set(id, own.calls[index] ?? '');
    if (answer) given.set(answer.id, own.id);
  }
  const trajectory = endpoint.recorder.trajectory();
  requireLines(run, trajectory);
  endpoint.recorder.requireTrained();
  return { trajectory, answers: rollout.answers };
}

/** Replaces recorded ids, the ids of calls before those of their answers, which they contain. */
function withIds(body: object, given: ReadonlyMap<string, string>): unknown {
  let text = JSON.stringify(body);
  for (const [id, own] of given) text = text.replaceAll(id, own);
  return JSON.parse(text);
}

type Item = { type?: string; id?: string; call_id?: string };
type Reply = {
  id: string;
  choices?: { message: { tool_calls?: Item[] } }[];
  content?: Item[];
  output?: Item[];
};

/** Returns the id of the answer, without what the dialect writes before it, and those of its calls. */
function idsIn(json: Record<string, unknown>): { id: string; calls: string[] } {
  const { id, choices, content, output } = json as Reply;
  const items = choices?.[0]?.message.tool_calls ?? content ?? output ?? [];
  const calls = items.filter(({ type = '' }) => /^(function|custom|tool_use|\w+_call)$/.test(type));
  const idOf = ({ call_id, id: own }: Item): string => call_id ?? own ?? '';
  return { id: id.slice(id.lastIndexOf('_') + 1).replace('chatcmpl-', ''), calls: calls.map(idOf) };
}

/** The lines are those of the unit test, where a scripted policy answers the same requests. */
function requireLines(run: string, { line = 'L1', turns, lines = [] }: Trajectory): void {
  const found = lines.map(summaryOf);
  const expected = RECORDED_LINES[run] ?? [];
  const own = expected.find((text) => text.startsWith(`${line} `));
  const others = expected.filter((text) => text !== own);
  must(
    own === `${line} main ${turns.length}` && others.join() === found.join(),
    `${run} has the lines ${line} main ${turns.length}, ${found.join()}`,
  );
}
