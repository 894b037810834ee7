/** Reads from the headers of a request which part of the agent sent it, by the rules of the card. */
import type { IncomingHttpHeaders } from 'node:http';
import type { AgentCard, Dialect } from '@swefarm/shared';
import { tryParseJson } from '@swefarm/shared';
import type { Sign } from '../lines/answer.ts';

type Rule = AgentCard['branches']['subagent'][number];

/** Returns a function that reads the sign of each request. The first request shows which program the agent's client is. */
export function createSigns({
  api,
  branches,
}: AgentCard): (headers: IncomingHttpHeaders, dialect: Dialect) => Sign {
  let client: string | null = null;
  return (headers, dialect) => {
    const product = productOf(headers);
    client ??= product;
    if (!api.dialects.includes(dialect) || product !== client) return 'foreign';
    if (branches.summary.some((rule) => fits(rule, headers))) return 'summary';
    return branches.subagent.some((rule) => fits(rule, headers)) ? 'subagent' : null;
  };
}

/** Returns the name of the program in `User-Agent`, without its version. */
const productOf = ({ 'user-agent': agent = '' }: IncomingHttpHeaders): string =>
  agent.split(/[/ ]/, 1)[0] ?? '';

function fits({ header, field, is }: Rule, headers: IncomingHttpHeaders): boolean {
  const given = headers[header];
  const text = Array.isArray(given) ? given[0] : given;
  if (text === undefined) return false;
  const value = field === undefined ? text : fieldOf(text, field);
  return value !== undefined && value !== '' && (is === undefined || value === is);
}

function fieldOf(json: string, field: string): string | undefined {
  const value = tryParseJson(json);
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, field)) return undefined;
  const found = (value as Record<string, unknown>)[field];
  return found === null || found === undefined ? undefined : String(found);
}
