/** Finds the card of the agent that a submitter names, and converts the values of its options. */
import {
  type OptionValues,
  parseCard,
  readCard,
  readShippedCard,
  requireFileOptions,
  shippedCards,
  typedOptions,
} from '@swefarm/agents';
import { AGENTS, type AgentCard, type AgentName, agentsWith, nearest, UsageError } from '@swefarm/shared';
import { asTree, type SettingsTree } from './settingstree.ts';

/** Harbor's names of agents, which the farm accepts. */
export const HARBOR_NAMES: Readonly<Record<string, AgentName>> = { oracle: 'golden', nop: 'noop' };

const ownName = (type: unknown): unknown =>
  typeof type === 'string' && Object.hasOwn(HARBOR_NAMES, type) ? HARBOR_NAMES[type] : type;

/**
 * Returns the settings of a run's section `agent`. A type that is the name of a shipped card becomes `installed` with this card; a card may
 * be a mapping or the path of a file. A type other than `installed` wins over a card, because callers of a gateway may name another agent
 * than its operator.
 *
 * @throws UsageError for an unknown agent, an agent without its card, and options that the card lacks
 */
export function agentSettings(given: SettingsTree): SettingsTree {
  const { type: named, card, ...others } = given;
  const type = ownName(named);
  const found = cardOf(type, card);
  if (found) {
    requireFileOptions(found, asTree(others.option_files) as Record<string, string>);
    return { ...others, type: 'installed', card: found, options: optionsOf(found, others.options) };
  }
  const option = Object.keys({ ...asTree(others.options), ...asTree(others.option_files) })[0];
  if (option === undefined) return { ...others, ...(type === undefined ? {} : { type }) };
  throw new UsageError(
    `--agent-option (agent.options): agent ${type ?? 'mini'} has no option ${option}; agents with options: ${shippedCards().join(', ')}`,
  );
}

function cardOf(type: unknown, card: unknown): AgentCard | null {
  if (typeof type === 'string' && type !== 'installed') {
    if (Object.hasOwn(AGENTS, type)) return null;
    if (shippedCards().includes(type)) return readShippedCard(type);
    throw new UsageError(unknownAgent(type));
  }
  if (card !== undefined && card !== null)
    return typeof card === 'string' ? readCard(card) : parseCard('agent.card', card);
  if (type !== 'installed') return null;
  throw new UsageError(
    `agent installed needs a card: name one of ${shippedCards().join(', ')} (--agent NAME), or give the file of a card (--agent-card FILE)`,
  );
}

function unknownAgent(name: string): string {
  const known = [...agentsWith({ byName: true }), ...shippedCards()];
  const best = nearest(name, known);
  const hint = best === null ? `agents: ${known.join(', ')}` : `did you mean ${best}?`;
  return `--agent (agent.type): there is no agent "${name}"; ${hint} (or give the file of a card: --agent-card FILE)`;
}

function optionsOf(card: AgentCard, given: unknown): OptionValues {
  const values = Object.entries(asTree(given)).map(([name, value]) => [
    name,
    typeof value === 'number' || typeof value === 'boolean' ? value : String(value),
  ]);
  return typedOptions(card, Object.fromEntries(values));
}
