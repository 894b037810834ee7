import { expect, test } from 'vitest';
import { adds, instance, ownPlan } from '../instance.fixture.ts';
import { planEvaluation } from '../plan/plan.ts';
import { hidesFailures, makeTestsFail, showsFailures } from './failingtests.ts';
import { failTests } from './mutatedpatch.ts';
import { withOtherValue } from './mutations.ts';

const first = () => 0;
const added = (patch: string): string[] =>
  patch.split('\n').flatMap((line) => (/^\+(?!\+\+ )/.test(line) ? [line.slice(1)] : []));
/** Returns the lines of a test file whose test is made to fail; null if no test can fail. */
function failed(path: string, lines: string[], id = 'test_holds'): string[] | null {
  const row = { test_patch: adds(path, ...lines), FAIL_TO_PASS: [id], PASS_TO_PASS: [] };
  const mutated = failTests(row, first);
  return mutated && added(mutated.patch);
}

test.each([
  ['an equality', 'assert a.b(1) == 2', 'assert a.b(1) != 2'],
  ['an inequality', 'assert a != b', 'assert a == b'],
  ['nothing', 'assert a is None', 'assert a is not None'],
  ['a denial', 'assert not a.b(1)', 'assert a.b(1)'],
  ['a truth', 'assert a.b(1)', 'assert not a.b(1)'],
  ['a text', 'assert a == "b == c"', 'assert not (a == "b == c")'],
  ['two', 'assert a == 1 and b', 'assert not (a == 1 and b)'],
  ['a message', 'assert a == 1, "no"', 'assert not (a == 1, "no")'],
  ["unittest's", 'self.assertEqual(a, [', 'self.assertNotEqual(a, ['],
  ["unittest's opposite", 'self.assertNotIn(a, b)', 'self.assertIn(a, b)'],
])('the opposite of %s', (_name, line, opposite) => {
  const lines = (one: string) => ['def test_holds(self):', `    ${one}`, '', 'x = 1'];
  expect(failed('t.py', lines(line))).toEqual(lines(opposite));
});

test.each([
  [
    'a head of many lines',
    ['def test_holds(', '    one,', '):', '    """Holds."""', '    for a in b:', '        assert a'],
  ],
  [
    'a docstring of many lines',
    ['def test_holds():', '    """Holds.', '', '    More.', '    """', '    with a():', '        b()'],
  ],
  ['lines that go on', ['async def test_holds():', '    assert a == (', '        1', '    )']],
])('a failing statement follows the docstring: %s', (_name, lines) => {
  const seen = failed('t.py', lines) ?? [];
  const rest = seen.filter((line) => !/^ {4}assert 10 == 11$/.test(line));
  expect(rest).toEqual(lines);
  expect(seen.length).toBe(lines.length + 1);
  const at = seen.findIndex((line) => line.includes('10 == 11'));
  expect(seen.slice(0, at).join('\n').split('"""').length % 2).toBe(1);
});

test.each([
  ['t.test.js', "  it('holds', () => {", '    expect(a).toBe(1);', '    expect(a).not.toBe(1);', 'holds'],
  ['t.spec.ts', "  test('holds', async () => {", '    await b();', null, 'x holds'],
  ['a_test.go', 'func TestHolds(t *testing.T) {', '\tif got := a(); got != 1 {', null, 'TestHolds'],
  [
    'a_test.go',
    'func TestHolds(t *testing.T) {',
    '\trequire.Equal(t, 1, a())',
    '\trequire.NotEqual(t, 1, a())',
    'TestHolds/sub',
  ],
  ['tests/a.rs', 'fn holds() {', '    assert_eq!(a(), 1);', '    assert_ne!(a(), 1);', 'a::holds'],
  [
    'src/test/A.java',
    '  public void holds() {',
    '    assertEquals(1, a());',
    '    assertNotEquals(1, a());',
    'A.holds',
  ],
  ['a_spec.rb', "  it 'holds' do", '    expect(a).to eq 1', '    expect(a).not_to eq 1', 'A holds'],
  ['ATest.php', '  public function testHolds() {', '    $a->b();', null, 'A::testHolds'],
  ['a_test.cc', 'TEST(A, Holds) {', '  EXPECT_EQ(a(), 1);', '  EXPECT_NE(a(), 1);', 'A.Holds'],
])('%s: %s', (path, head, line, opposite, id) => {
  const seen = failed(path, [head, line, '}'], id);
  if (opposite) expect(seen).toEqual([head, opposite, '}']);
  else
    expect(seen).toMatchObject([head, expect.stringMatching(/throw new Error|Fatal|assertSame/), line, '}']);
});

test('existing lines are replaced too, and the counts of hunks are updated', () => {
  const test_patch = `diff --git a/t.py b/t.py\n--- a/t.py\n+++ b/t.py\n@@ -1,4 +1,5 @@\n def test_holds():\n     a = 1\n-    assert a == 2\n+    assert a == 1\n     assert b\n+    assert c\n@@ -9,2 +10,3 @@ def test_opens():\n def test_opens(a):\n+    b = 1\n     for c in a: assert c\n`;
  const row = { test_patch, FAIL_TO_PASS: ['t.py::test_holds'], PASS_TO_PASS: ['t.py::test_opens[1]'] };
  expect(failTests(row, first)).toEqual({
    ids: ['t.py::test_holds', 't.py::test_opens[1]'],
    patch: `diff --git a/t.py b/t.py\n--- a/t.py\n+++ b/t.py\n@@ -1,4 +1,5 @@\n def test_holds():\n     a = 1\n-    assert a == 2\n+    assert a != 1\n-    assert b\n+    assert not b\n+    assert not c\n@@ -9,2 +10,4 @@ def test_opens():\n def test_opens(a):\n+    assert 10 == 11\n+    b = 1\n     for c in a: assert c\n`,
  });
});

test('functions without counted names do not change', () => {
  const lines = [
    'def helper():',
    '    assert a',
    'def test_holds(p):',
    '    p.make("""',
    '        def test_in():',
    '            assert 1',
    '    """)',
  ];
  expect(failed('t.py', lines)).toEqual([...lines.slice(0, 3), '    assert 10 == 11', ...lines.slice(3)]);
  expect(failed('t.md', lines)).toBeNull();
  expect(failed('t.py', lines, 'test_hold')).toBeNull();
});

const TESTS = adds(
  'tests/test_crate.py',
  ...['def test_holds():', '    assert crate.LIMIT == 10', 'def test_opens():', '    assert crate.opens()'],
);
const row = instance({ test_patch: TESTS });

test('the script applies the test patch with tests that fail, and nothing else changes', () => {
  const plan = planEvaluation(row);
  const failing = makeTestsFail(plan, row, first);
  expect(failing?.ids).toEqual([...row.FAIL_TO_PASS, ...row.PASS_TO_PASS]);
  const swap = (text: string) =>
    text.replace('LIMIT == 10', 'LIMIT != 10').replace('assert crate.opens()', 'assert not crate.opens()');
  expect(failing?.plan).toEqual({ ...plan, script: swap(plan.script) });
});

test('a test patch in a step of the plan is replaced', () => {
  const step = { name: 'tests', script: `git apply <<'E'\n${TESTS}E`, may_fail: true, timeout: 9 };
  const failing = makeTestsFail(ownPlan({ after: [step] }), row, first);
  expect(failing?.plan.after[0]?.script).toContain('LIMIT != 10');
});

test('tests outside of the test patch are redefined at the end of their files', () => {
  const smith = instance({
    FAIL_TO_PASS: ['tests/test_crate.py::Lid::test_holds[1]'],
    PASS_TO_PASS: [],
    test_patch: '',
  });
  const failing = makeTestsFail(planEvaluation(smith), smith, first);
  expect(failing?.ids).toEqual(smith.FAIL_TO_PASS);
  const line = failing?.plan.script.split('\n').find((one) => one.includes('test_holds'));
  expect(line).toBe(
    "[ ! -f /testbed/tests/test_crate.py ] || printf '%b' '\\n\\ndef test_holds(*args, **kwargs):\\n    assert 10 == 11\\n\\n\\nLid.test_holds = test_holds\\ndel test_holds\\n' >>/testbed/tests/test_crate.py",
  );
});

test.each([
  ['tests of no known file', { FAIL_TO_PASS: ['holds'], PASS_TO_PASS: [] }],
  ['a script of their own without a place for them', { eval_script: 'pytest -rA', test_patch: '' }],
])('none for %s', (_name, change) => {
  const one = instance({ ...change });
  expect(makeTestsFail(planEvaluation(one), one, first)).toBeNull();
});

const seen = (evaluation: string, success: string[], unreadable?: string) => ({
  evaluation: evaluation as 'completed',
  resolved: success.length === 2,
  tests_status: {
    FAIL_TO_PASS: { success, failure: [] },
    PASS_TO_PASS: { success: [], failure: [] },
  } as never,
  ...(unreadable ? { unreadable } : {}),
});

test.each([
  ['seen to fail', seen('completed', []), true, false],
  ['one not seen', seen('completed', ['b']), false, true],
  ['timed out', seen('timed_out', []), false, true],
  ['killed', seen('sandbox_killed', []), false, true],
  ['unreadable', seen('completed', [], 'raises'), false, true],
])('%s', (_name, one, shows, hides) => {
  expect(showsFailures(one, ['a', 'b'])).toBe(shows);
  expect(hidesFailures(one, seen('completed', []), ['a', 'b'])).toBe(hides);
  // A failure that gold does not show proves nothing.
  expect(hidesFailures(one, seen('timed_out', []), ['a', 'b'])).toBe(false);
  expect(hidesFailures(one, seen('completed', ['a', 'b']), ['a', 'b'])).toBe(false);
});

test.each([
  ['    assert a.b(2, 3) == 5', '    assert a.b(2, 3) == 6'],
  ['    assert a == "b"', '    assert a == "ba"'],
  ['    self.assertEqual(a.b("c", 1), "<1>")', '    self.assertEqual(a.b("c", 1), "<1>a")'],
  ['    expect(a(1)).toBe(2);', '    expect(a(1)).toBe(3);'],
  ["    assert.strictEqual(a(), 'b');", "    assert.strictEqual(a(), 'ba');"],
  ['\tif got := a(); got != 1 {', null],
  ['\tif got != 1 {', '\tif got != 2 {'],
  ['\tassert.Equal(t, 1, a())', '\tassert.Equal(t, 2, a())'],
  ['    assert_eq!(a(1), 2.5);', '    assert_eq!(a(1), 3.5);'],
  ['    assertEquals(-1, a());', '    assertEquals(-2, a());'],
  ['    EXPECT_EQ(a(), 1);', '    EXPECT_EQ(a(), 2);'],
  ['    expect(a).to eq(1)', '    expect(a).to eq(2)'],
  ['    expect(a).not.toBe(1);', null],
  ['    assert a(1) != 2', null],
  ['    assert a == b', null],
  ['    assert a == 1 or b', null],
])('another expected value: %s', (line, other) => {
  expect(withOtherValue(line, first)).toBe(other);
});

test('values change in tests that have one, and no statement is added', () => {
  const lines = [
    'def test_holds():',
    '    x = a()',
    '    assert x == 1',
    '    assert x',
    'def test_more():',
    '    a()',
  ];
  const row = {
    test_patch: adds('t.py', ...lines),
    FAIL_TO_PASS: ['test_holds', 'test_more'],
    PASS_TO_PASS: [],
  };
  const mutated = failTests(row, first, 'values');
  expect(mutated?.ids).toEqual(['test_holds']);
  expect(added(mutated?.patch ?? '')).toEqual(lines.with(2, '    assert x == 2'));
  expect(failTests({ ...row, FAIL_TO_PASS: ['test_more'] }, first, 'values')).toBeNull();
  const plan = planEvaluation(instance());
  expect(makeTestsFail(plan, instance({ FAIL_TO_PASS: ['t.py::test_more'] }), first, 'values')).toBeNull();
});
