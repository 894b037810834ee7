import { expect, test } from 'vitest';
import { authorizationAt, keyAt, originOf, originsOf } from './policykey.ts';
import { Secret } from './secret.ts';

test('an origin is scheme, host and port, whatever is written around them', () => {
  expect(originOf('http://VLLM:80/v1/')).toBe('http://vllm');
  expect(originOf('https://vllm:443')).toBe('https://vllm');
  expect(originOf('http://[::1]:8000/v1')).toBe('http://[::1]:8000');
  expect(originOf('http://vllm:8000@evil/v1')).toBe('http://evil');
  for (const none of ['vllm:8000', 'file:///etc/passwd', 'ftp://vllm', 'data:,x', '', 7, null]) {
    expect(originOf(none), String(none)).toBeNull();
  }
  expect(originsOf(['http://a/v1', 'http://a/v2', 'nowhere', 'http://b:1'])).toEqual([
    'http://a',
    'http://b:1',
  ]);
  expect(originsOf('http://a')).toEqual([]);
});

test('a key is revealed for its origins only', () => {
  const key = { secret: new Secret('sk-of-this-test'), origins: originsOf(['https://vllm:8000/v1']) };
  expect(keyAt(key, 'https://vllm:8000/v1/models')).toBe('sk-of-this-test');
  expect(authorizationAt(key, 'https://VLLM:8000')).toEqual({ authorization: 'Bearer sk-of-this-test' });
  for (const other of [
    ...['http://vllm:8000/v1', 'https://vllm/v1', 'https://vllm:8001/v1', 'https://vllm.evil:8000/v1'],
    ...[
      'https://vllm:8000@evil/v1',
      'https://evil/?https://vllm:8000',
      'https:\\\\evil\\vllm:8000',
      'nowhere',
    ],
  ]) {
    expect(keyAt(key, other), other).toBeNull();
  }
  expect(keyAt({ ...key, origins: [] }, 'https://vllm:8000')).toBeNull();
  expect(authorizationAt(null, 'https://vllm:8000')).toEqual({});
});
