/** Gives the calls of an answer ids that are unique in the rollout: agents assign results to calls by id. */
import type { Message } from '@swefarm/shared';

/**
 * Returns the answer for the agent, and the id for the agent of each call whose id changed → its id for the policy. `taken`: all ids of
 * the rollout, to which those of this answer are added.
 */
export function withUniqueIds(
  message: Message,
  answerId: string,
  taken: Set<string>,
): { message: Message; callIds: ReadonlyMap<string, string> } {
  const callIds = new Map<string, string>();
  const calls = message.tool_calls?.map((call, index) => {
    const id = taken.has(call.id) ? `call_${answerId}_${index}` : call.id;
    taken.add(id);
    if (id !== call.id) callIds.set(id, call.id);
    return id === call.id ? call : { ...call, id };
  });
  return { message: calls && callIds.size > 0 ? { ...message, tool_calls: calls } : message, callIds };
}
