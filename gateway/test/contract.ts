/** Compares real answers of a gateway with its OpenAPI document. */
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect } from 'vitest';
import { bearer } from './gateway.ts';

type Json = Record<string, unknown>;
export type Operation = {
  summary?: string;
  security?: unknown[];
  responses: Record<string, { description: string; content?: Record<string, { schema: Json }> }>;
};
export type ApiDocument = Json & { paths: Record<string, Record<string, Operation>> };

export type Asked = {
  /** Values of the path's parameters. */
  params?: Record<string, string | number>;
  query?: string;
  body?: unknown;
  headers?: Record<string, string>;
  token?: string | null;
};

export type Contract = {
  /** `METHOD /path/{parameter}` and status of all answers. */
  readonly seen: ReadonlySet<string>;
  /** Sends a request, expects a declared answer with this status, and returns the body. */
  // biome-ignore lint/suspicious/noExplicitAny: the document describes the answer
  ask(url: string, operation: string, status: number, asked?: Asked): Promise<any>;
};

/** Returns all operations of a document. */
export const operationsOf = (document: ApiDocument): string[] =>
  Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );

export async function fetchDocument(url: string, token?: string): Promise<ApiDocument> {
  const reply = await fetch(`${url}/v1/openapi.json`, { headers: bearer(token) });
  expect(reply.status).toBe(200);
  return (await reply.json()) as ApiDocument;
}

/** Forbids keys that the document does not declare, although later versions may add keys. */
function closed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(closed);
  if (value === null || typeof value !== 'object') return value;
  const copy = Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, closed(inner)]));
  const isOpenObject = 'properties' in copy && copy.type === 'object' && !('additionalProperties' in copy);
  return isOpenObject ? { ...copy, additionalProperties: false } : copy;
}

const pointer = (part: string): string =>
  encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1'));

export function createContract(document: ApiDocument): Contract {
  const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true });
  ajv.addSchema(closed(document) as Json, 'api');
  const seen = new Set<string>();
  return {
    seen,
    async ask(url, operation, status, asked = {}) {
      const [method = '', path = ''] = operation.split(' ');
      const filled = path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(`${asked.params?.[name]}`));
      const token = asked.token === undefined ? bearer() : asked.token === null ? {} : bearer(asked.token);
      const type = asked.body === undefined ? {} : { 'content-type': 'application/json' };
      const body = asked.body === undefined ? {} : { body: JSON.stringify(asked.body) };
      const headers = { ...token, ...type, ...asked.headers };
      const reply = await fetch(`${url}${filled}${asked.query ?? ''}`, { method, headers, ...body });
      const text = await reply.text();
      expect([operation, reply.status, reply.status === status ? '' : text]).toEqual([operation, status, '']);
      seen.add(`${operation} ${status}`);
      const verb = method.toLowerCase();
      const declared = document.paths[path]?.[verb]?.responses[status];
      expect(declared, `${operation} answers ${status}, which the document does not declare`).toBeDefined();
      if (declared?.content?.['application/json'] === undefined) {
        expect(text).toBe('');
        return null;
      }
      expect(reply.headers.get('content-type')).toMatch(/^application\/json/);
      const at = ['paths', path, verb, 'responses', `${status}`, 'content', 'application/json'];
      const validate = ajv.compile({ $ref: `api#/${at.map(pointer).join('/')}/schema` });
      const answer: unknown = JSON.parse(text);
      validate(answer);
      expect([operation, status, validate.errors ?? []]).toEqual([operation, status, []]);
      return answer;
    },
  };
}
