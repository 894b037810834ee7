import { expect, test } from 'vitest';
import { reverseDiff } from './reverse.ts';

const diff = `diff --git a/a.py b/a.py
index 111..222 100644
--- a/a.py
+++ b/a.py
@@ -1,4 +1,3 @@ def f():
 same
-old one
---- looks like a header
+new
 same
diff --git a/gone.py b/gone.py
deleted file mode 100644
index 333..000
--- a/gone.py
+++ /dev/null
@@ -1 +0,0 @@
-last
\\ No newline at end of file
`;

const reversed = `diff --git a/a.py b/a.py
index 222..111 100644
--- a/a.py
+++ b/a.py
@@ -1,3 +1,4 @@ def f():
 same
-new
+old one
+--- looks like a header
 same
diff --git a/gone.py b/gone.py
new file mode 100644
index 000..333
--- /dev/null
+++ b/gone.py
@@ -0,0 +1 @@
+last
\\ No newline at end of file
`;

test('hunks, counts, modes and names change sides', () => {
  expect(reverseDiff(diff)).toBe(reversed);
});

test('reversing a diff twice returns the diff, also for renames', () => {
  const rename =
    'diff --git a/x b/y\nsimilarity index 90%\nrename from x\nrename to y\nindex 1..2\n--- a/x\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n';
  expect(reverseDiff(reverseDiff(rename))).toBe(rename);
  expect(reverseDiff(rename)).toContain('rename from y\nrename to x');
  expect(reverseDiff(reverseDiff(diff))).toBe(diff);
  expect(reverseDiff('')).toBe('');
});
