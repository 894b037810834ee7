import { expect, test } from 'vitest';
import { patchKey } from './choose.ts';

const PATCH = `diff --git a/a.py b/a.py
index 1111111..2222222 100644
--- a/a.py
+++ b/a.py
@@ -10,3 +10,3 @@ def f():
     x = 1
-    return x
+    return x + 1
`;

test('patches are equal despite other line numbers, hashes, context or blanks', () => {
  const moved = PATCH.replace('index 1111111..2222222', 'index 3333333..4444444')
    .replace('@@ -10,3 +10,3 @@ def f():', '@@ -90,3 +91,3 @@')
    .replace('     x = 1', '     y = 2')
    .replace('+    return x + 1', '+    return  x +  1  ');
  expect(patchKey(moved)).toBe(patchKey(PATCH));
});

test('the order of files has no effect', () => {
  const other = PATCH.replaceAll('a.py', 'b.py');
  expect(patchKey(PATCH + other)).toBe(patchKey(other + PATCH));
});

test.each([
  ['another line', PATCH.replace('x + 1', 'x + 2')],
  ['another file', PATCH.replaceAll('a.py', 'b.py')],
  ['another indentation', PATCH.replace('+    return', '+        return')],
  ['a tab for blanks', PATCH.replace('+    return', '+\treturn')],
  ['a removed line more', PATCH.replace('     x = 1', '-    x = 1')],
])('%s makes another patch', (_name, patch) => {
  expect(patchKey(patch)).not.toBe(patchKey(PATCH));
});

test('a patch that changes nothing has no key', () => {
  expect(patchKey('')).toBe('');
  expect(patchKey('\n')).toBe('');
});
