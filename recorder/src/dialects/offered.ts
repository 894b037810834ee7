/** Reads the tools of a request into functions, and remembers the form in which the agent offered each. */
import type { Message, ToolDefinition } from '@swefarm/shared';
import { tryParseJson } from '@swefarm/shared';
import type { ToolShape } from './dialect.ts';
import { canonicalArguments, type Fields, isFields, requireFields, requireName, textOf } from './fields.ts';

export type Call = NonNullable<Message['tool_calls']>[number];

const FREE_TEXT = { type: 'object', properties: { input: { type: 'string' } }, required: ['input'] };

/** Name of a function in a namespace, for the policy. */
export const flatName = (namespace: string | null, name: string): string =>
  namespace === null ? name : `${namespace}__${name}`;

export const functionCall = (id: string, name: string, args: string): Call => ({
  id,
  type: 'function',
  function: { name, arguments: canonicalArguments(args) },
});

/** A call of a tool with free text, as the policy makes it. */
export const freeTextCall = (id: string, name: string, input: string): Call =>
  functionCall(id, name, JSON.stringify({ input }));

/** Returns the free text of a call. Arguments that cannot be read are given whole, so that the agent sees what was sampled. */
export function freeTextOf({ function: { arguments: args } }: Call): string {
  const value = tryParseJson(args);
  return isFields(value) && typeof value.input === 'string' ? value.input : args;
}

/** The functions of a request. A second tool of the same name is dropped. */
export class OfferedTools {
  readonly tools: ToolDefinition[] = [];
  readonly shapes = new Map<string, ToolShape>();
  readonly #names = new Set<string>();
  readonly #dropped: Set<string>;

  constructor(dropped: Set<string>) {
    this.#dropped = dropped;
  }

  /** Adds a function with a schema of its arguments. Throws BadRequest. */
  addFunction(tool: Fields, schema: unknown, path: string, namespace: string | null = null): void {
    const name = requireName(tool.name, `${path}.name`);
    const parameters = schema === undefined || schema === null ? { type: 'object', properties: {} } : schema;
    this.#add({ kind: 'function', name, namespace }, tool, requireFields(parameters, `${path} schema`), path);
  }

  /** Adds a tool that takes free text. Throws BadRequest. */
  addFreeText(tool: Fields, path: string, namespace: string | null = null): void {
    const name = requireName(tool.name, `${path}.name`);
    this.#add({ kind: 'custom', name, namespace }, tool, FREE_TEXT, path);
  }

  /** Leaves out a tool, such as one that runs on the server of a company. */
  drop(kind: string): void {
    this.#dropped.add(`tool ${kind}`);
  }

  #add(shape: ToolShape, tool: Fields, parameters: Record<string, unknown>, path: string): void {
    const name = flatName(shape.namespace, shape.name);
    const description = textOf(tool.description, `${path}.description`);
    if (this.#names.has(name)) {
      this.drop(`${name} (second)`);
      return;
    }
    this.#names.add(name);
    this.tools.push({ type: 'function', function: { name, description, parameters } });
    if (shape.kind === 'custom' || shape.namespace !== null) this.shapes.set(name, shape);
  }
}

/** Returns the form in which the agent offered the function of a call. */
export const shapeOf = (shapes: ReadonlyMap<string, ToolShape>, { function: { name } }: Call): ToolShape =>
  shapes.get(name) ?? { kind: 'function', name, namespace: null };
