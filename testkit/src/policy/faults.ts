/** Decides which fault affects which request. The server's files implement the effect of a fault on an answer. */
import { UsageError } from '@swefarm/shared';
import { z } from 'zod';
import { hash32, unit } from './random.ts';

export const FaultKind = z.enum([
  /** Connections are refused: as a rule without conditions the server stops listening, else it resets this connection. */
  'refuse',
  'reset',
  'unauthorized',
  'model_unknown',
  'rate_limited',
  'server_error',
  'unavailable',
  'context_overflow',
  /** HTTP 200 with a body that is not JSON. */
  'garbage',
  /** HTTP 200 with JSON that has no choices. */
  'no_choices',
  /** The request is accepted and never answered. */
  'silence',
  /** The connection ends in the middle of the body. */
  'cut',
  /** The body arrives in small pieces over `ms`. */
  'slow_body',
  /** HTTP 200 with `finish_reason: abort`: the engine is paused for new weights in the middle of the answer. */
  'aborted',
  'missing_token_ids',
  /** One log-probability or one token id is missing. */
  'short_log_probs',
  'short_token_ids',
  /** From the second turn on, the prompt does not begin with the earlier tokens. */
  'non_contiguous',
]);
export type FaultKind = z.infer<typeof FaultKind>;

/** A fault. A turn of a script may have one, which then hits this turn of each rollout. */
export const Fault = z.strictObject({
  kind: FaultKind,
  /** Number of requests that the fault affects: per rollout and turn for a turn's fault, in total for a rule. Absent: all. */
  times: z.number().int().positive().optional(),
  /** Share of the requests that the fault affects; derived from the seed, the rollout, the turn and the number of the try. */
  probability: z.number().min(0).max(1).default(1),
  /** Seconds of the Retry-After header of `rate_limited` and `unavailable`. */
  retry_after: z.number().nonnegative().optional(),
  /** Length of `slow_body`; for `refuse` the time until the server listens again (absent: until the rules are changed). */
  ms: z.number().positive().optional(),
});
export type Fault = z.infer<typeof Fault>;

/** A fault with the conditions for its requests; an absent field matches all requests. */
export const FaultRule = Fault.extend({
  /** Substring of the first user message. */
  match: z.string().optional(),
  /** The complete rollout id. */
  rollout: z.string().optional(),
  instance: z.string().optional(),
  /** Index of the rollout in its group. */
  index: z.number().int().nonnegative().optional(),
  /** Number of the turn, from 0. */
  turn: z.number().int().nonnegative().optional(),
});
export type FaultRule = z.infer<typeof FaultRule>;
/** A rule as users write it, with defaults omitted. */
export type FaultRuleInput = z.input<typeof FaultRule>;
export const FaultRules = z.array(FaultRule);

/** Checks rules as users write them. Throws UsageError `policy_faults`. */
export function readRules(rules: unknown): FaultRule[] {
  const read = FaultRules.safeParse(rules);
  if (read.success) return read.data;
  const lines = read.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`);
  throw new UsageError(`fault rules: ${lines.join('; ')}`, { code: 'policy_faults' });
}

/** A refusal for all requests: the server stops listening. */
export const isBareRefusal = (rule: FaultRule): boolean =>
  rule.kind === 'refuse' &&
  rule.probability === 1 &&
  [rule.match, rule.rollout, rule.instance, rule.index, rule.turn, rule.times].every(
    (it) => it === undefined,
  );

/** The facts of a request by which its fault is chosen. */
export type FaultTarget = {
  rollout: string;
  instance: string | null;
  index: number | null;
  turn: number;
  firstUser: string;
};

export type FaultBook = {
  /** Replaces the rules and resets their counters. */
  set(rules: readonly FaultRule[]): void;
  readonly rules: readonly FaultRule[];
  /** Returns the fault for this request, if any, and counts it. A turn's own fault takes precedence over the rules. */
  pick(target: FaultTarget, own: Fault | undefined): Fault | null;
  /** Number of affected requests so far, by kind of fault. */
  readonly counts: ReadonlyMap<FaultKind, number>;
};

export function openFaultBook(seed: number, initial: readonly FaultRule[]): FaultBook {
  let rules = [...initial];
  let struck = new Map<string, number>();
  const tries = new Map<string, number>();
  const counts = new Map<FaultKind, number>();

  const strikes = (fault: Fault, key: string, draw: number): boolean => {
    const before = struck.get(key) ?? 0;
    if (fault.times !== undefined && before >= fault.times) return false;
    if (draw >= fault.probability) return false;
    struck.set(key, before + 1);
    counts.set(fault.kind, (counts.get(fault.kind) ?? 0) + 1);
    return true;
  };

  return {
    set(next) {
      rules = [...next];
      struck = new Map();
    },
    get rules() {
      return rules;
    },
    counts,
    pick(target, own) {
      if (!own && rules.length === 0) return null;
      const turnName = `${target.rollout}#${target.turn}`;
      const attempt = tries.get(turnName) ?? 0;
      tries.set(turnName, attempt + 1);
      const draw = (which: number) => unit(hash32(turnName, seed + which), attempt);
      if (own && strikes(own, `turn ${turnName}`, draw(0))) return own;
      for (const [i, rule] of rules.entries()) {
        if (hits(rule, target) && strikes(rule, `rule ${i}`, draw(i + 1))) return rule;
      }
      return null;
    },
  };
}

function hits(rule: FaultRule, target: FaultTarget): boolean {
  return (
    (rule.match === undefined || target.firstUser.includes(rule.match)) &&
    (rule.rollout === undefined || rule.rollout === target.rollout) &&
    (rule.instance === undefined || rule.instance === target.instance) &&
    (rule.index === undefined || rule.index === target.index) &&
    (rule.turn === undefined || rule.turn === target.turn)
  );
}
