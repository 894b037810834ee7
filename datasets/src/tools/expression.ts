/**
 * Evaluates criteria on rows in CEL, the Common Expression Language (github.com/google/cel-spec). CEL has no loops and can access only the
 * row. The library interprets a syntax tree and generates no code. This file limits the evaluation time.
 */
import { createContext, Script } from 'node:vm';
import { Environment } from '@marcbachmann/cel-js';
import { UsageError } from '@swefarm/shared';
import { describeValue } from '../problem.ts';

export type Criterion = {
  /** The variables that the expression uses. */
  names: ReadonlySet<string>;
  /** Returns whether a row matches. @throws UsageError for a comparison with null, a wrong type, or a timeout */
  matches(variables: ReadonlyMap<string, unknown>, where: string): boolean;
};

const LIMITS = {
  maxAstNodes: 2_000,
  maxDepth: 64,
  maxListElements: 100_000,
  maxMapEntries: 100,
  maxCallArguments: 16,
};
/** Time limit of the evaluation for one row. */
const LONGEST_MS = 1_000;
/** Calls that may take more than linear time: regular expressions and nested passes over lists. */
const COSTLY = new Set(['matches', 'all', 'exists', 'exists_one', 'map', 'filter']);

const environment = new Environment({
  unlistedVariablesAreDyn: true,
  homogeneousAggregateLiterals: false,
  limits: LIMITS,
})
  .registerFunction('len(list): int', (list: unknown[]) => BigInt(list.length))
  .registerFunction('len(string): int', (text: string) => BigInt([...text].length))
  .registerFunction('between(dyn, dyn, dyn): bool', between);

function between(value: unknown, low: unknown, high: unknown): boolean {
  const kinds = new Set([value, low, high].map((one) => (typeof one === 'string' ? 'text' : 'number')));
  for (const one of [value, low, high]) {
    if (!['string', 'number', 'bigint'].includes(typeof one) || kinds.size > 1) {
      throw new Error(`between takes three numbers or three texts, not ${describeValue(one)}`);
    }
  }
  return (value as number) >= (low as number) && (value as number) <= (high as number);
}

/** Parses and checks an expression. @throws UsageError with the position of the mistake */
export function parseCriterion(text: string): Criterion {
  let run: ReturnType<Environment['parse']>;
  try {
    run = environment.parse(text);
    const checked = run.check();
    if (!checked.valid) throw checked.error;
    if (checked.type !== undefined && !['bool', 'dyn'].includes(checked.type)) {
      throw new UsageError(
        `the expression ${JSON.stringify(text)} gives ${checked.type}; expected true or false, as size(FAIL_TO_PASS) > 1 does`,
      );
    }
  } catch (error) {
    throw mistake(text, error);
  }
  const nodes = [...nodesOf(run.ast)];
  const costly = nodes.some(({ op, args }) => op === 'rcall' && COSTLY.has(String((args as unknown[])[0])));
  const limited = costly ? withTimeLimit() : null;
  return {
    names: new Set(nodes.flatMap(({ op, args }) => (op === 'id' ? [String(args)] : []))),
    matches(variables, where) {
      try {
        const evaluate = (): unknown => run(variables as Map<string, unknown>);
        const answer = limited ? limited(evaluate) : evaluate();
        if (typeof answer === 'boolean') return answer;
        throw new Error(`it gives ${String(answer)}; expected true or false`);
      } catch (error) {
        throw mistake(text, error, where);
      }
    },
  };
}

type Positioned = Error & { range?: { start: number }; summary?: string; code?: string };

function mistake(text: string, error: unknown, where?: string): UsageError {
  if (error instanceof UsageError) return error;
  const { range, summary, message, code } = error as Positioned;
  const reason =
    code === 'ERR_SCRIPT_EXECUTION_TIMEOUT'
      ? `it takes more than ${LONGEST_MS / 1000} s`
      : (summary ?? message);
  const at = range ? ` at character ${range.start + 1}` : '';
  const mark = range ? `\n  ${text.replaceAll('\n', ' ')}\n  ${' '.repeat(range.start)}^` : '';
  const hint = /\b(and|or|not)\b/.test(text) ? '; CEL writes && for and, || for or, ! for not' : '';
  const row = where === undefined ? '' : `${where}: `;
  const missing = /null/.test(reason)
    ? '; a column that a row lacks is null: test it first, as in version != null && …'
    : '';
  return new UsageError(`${row}the expression fails${at}: ${reason}${hint}${missing}${mark}`);
}

/** Returns a function that runs a call under the time limit. V8 stops the call even inside a regular expression. */
function withTimeLimit(): (call: () => unknown) => unknown {
  const scope = createContext({ __proto__: null, call: null as unknown });
  const script = new Script('call()');
  return (call) => {
    scope.call = call;
    return script.runInContext(scope, { timeout: LONGEST_MS });
  };
}

type Node = { op: string; args: unknown };

function* nodesOf(tree: unknown): Generator<Node> {
  if (Array.isArray(tree)) for (const part of tree) yield* nodesOf(part);
  if (tree === null || typeof tree !== 'object' || !('op' in tree)) return;
  const node = tree as Node;
  yield node;
  if (node.op !== 'value') yield* nodesOf(node.args);
}
