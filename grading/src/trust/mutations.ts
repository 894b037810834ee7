/** Finds the tests of each language in a diff and makes them fail: by a failing statement, an opposite assertion or another value. */

export type Language = {
  files: RegExp;
  /** Matches the first line of a test. The first group with a match is the name of the test. */
  head: RegExp;
  /** Matches the line on which the head of a test ends. */
  opens: RegExp;
  /** Returns a failing statement; `head` is the first line of the test. */
  fails: (head: string, random: Random) => string;
  /** Returns the opposite assertion; null if no opposite is known. */
  invert: (line: string) => string | null;
};

/** Returns a random integer from 0 to `limit` - 1. */
export type Random = (limit: number) => number;

type Swap = readonly [one: string, other: string];

function swapped(line: string, swaps: readonly Swap[]): string | null {
  for (const [one, other] of swaps) {
    for (const [from, to] of [
      [one, other],
      [other, one],
    ] as const) {
      const at = line.indexOf(from);
      if (at >= 0) return line.slice(0, at) + to + line.slice(at + from.length);
    }
  }
  return null;
}

const UNEQUAL = (random: Random): [number, number] => {
  const one = random(900) + 10;
  return [one, one + 1 + random(9)];
};

const UNITTEST: readonly Swap[] = [
  ['.assertEqual(', '.assertNotEqual('],
  ['.assertTrue(', '.assertFalse('],
  ['.assertIsNone(', '.assertIsNotNone('],
  ['.assertIsInstance(', '.assertNotIsInstance('],
  ['.assertIs(', '.assertIsNot('],
  ['.assertIn(', '.assertNotIn('],
  ['.assertRegex(', '.assertNotRegex('],
  ['.assertAlmostEqual(', '.assertNotAlmostEqual('],
  ['.assertContains(', '.assertNotContains('],
  ['.assertGreater(', '.assertLessEqual('],
  ['.assertLess(', '.assertGreaterEqual('],
];
const COMPARISONS: readonly Swap[] = [
  [' is not None', ' is None'],
  [' == ', ' != '],
];

/** Whether the text closes all its brackets and quotation marks, so that the statement ends here. */
function isWhole(text: string): boolean {
  let depth = 0;
  let quote = '';
  for (const letter of text) {
    if (quote !== '') {
      if (letter === quote) quote = '';
    } else if (letter === '"' || letter === "'") quote = letter;
    else if ('([{'.includes(letter)) depth++;
    else if (')]}'.includes(letter)) depth--;
    if (depth < 0) return false;
  }
  return depth === 0 && quote === '' && !/[\\#]/.test(text);
}

/** Inverts an assertion: inverts a single comparison, and negates any other expression. */
function invertPython(line: string): string | null {
  const [, head, asserted] = /^(\s*assert )(.+?)\s*$/.exec(line) ?? [];
  if (head === undefined || asserted === undefined)
    return /^\s*self\.assert/.test(line) ? swapped(line, UNITTEST) : null;
  if (!isWhole(asserted)) return null;
  const plain = !/ (?:and|or|if|for|in|not|lambda) |["',]/.test(asserted);
  const comparisons = asserted.match(/ (?:==|!=|<=?|>=?|is) /g)?.length ?? 0;
  const opposite = plain && comparisons === 1 ? swapped(asserted, COMPARISONS) : null;
  if (opposite !== null) return head + opposite;
  const [, denied] = /^not ([\w.]+(?:\([^()]*\))?)$/.exec(asserted) ?? [];
  if (denied !== undefined) return head + denied;
  return /^[\w.]+(?:\([^()]*\))?$/.test(asserted) ? `${head}not ${asserted}` : `${head}not (${asserted})`;
}

const python: Language = {
  files: /\.py$/,
  head: /^\s*(?:async\s+)?def\s+(\w+)\s*\(/,
  opens: /:\s*(?:#.*)?$/,
  fails: (_head, random) => {
    const [one, other] = UNEQUAL(random);
    return `assert ${one} == ${other}`;
  },
  invert: invertPython,
};

const JS_ASSERT: readonly Swap[] = [
  ['.deepStrictEqual(', '.notDeepStrictEqual('],
  ['.strictEqual(', '.notStrictEqual('],
  ['.deepEqual(', '.notDeepEqual('],
  ['assert.equal(', 'assert.notEqual('],
  ['.to.not.', '.to.'],
  ['.should.not.', '.should.'],
];

function invertScript(line: string): string | null {
  if (!/\b(?:expect|assert|should)\b/.test(line) || line.includes('?.')) return null;
  if (line.includes('.not.to')) return line.replace('.not.to', '.to');
  const matcher = /(\)|\.resolves|\.rejects)\.to(?=[A-Z])/;
  if (matcher.test(line)) return line.replace(matcher, '$1.not.to');
  return swapped(line, JS_ASSERT);
}

const script: Language = {
  files: /\.(?:[cm]?[jt]sx?|vue|svelte)$/,
  head: /^\s*(?:it|test|specify)(?:\.\w+)*\s*\(\s*(?:'([^']+)'|"([^"]+)"|`([^`]+)`)/,
  opens: /\{\s*$/,
  fails: (_head, random) => `throw new Error('${UNEQUAL(random).join(' != ')}');`,
  invert: invertScript,
};

const TESTIFY: readonly Swap[] = [
  ['assert.Equal(', 'assert.NotEqual('],
  ['require.Equal(', 'require.NotEqual('],
  ['.NoError(', '.Error('],
  ['.True(', '.False('],
  ['.NotNil(', '.Nil('],
  ['.Contains(', '.NotContains('],
];

const go: Language = {
  files: /_test\.go$/,
  head: /^func\s+(Test\w*)\s*\(/,
  opens: /\{\s*$/,
  fails: (head, random) =>
    `${/\(\s*(\w+)\s+\*/.exec(head)?.[1] ?? 't'}.Fatal("${UNEQUAL(random).join(' != ')}")`,
  invert: (line) => {
    if (/^\s*(?:assert|require)\.\w+\(/.test(line)) return swapped(line, TESTIFY);
    const compared = /^\s*if (?:got|want|expected|actual)\b[^&|;]*(?:==|!=)[^&|;]*\{\s*$/.test(line);
    return compared ? swapped(line, [[' != ', ' == ']]) : null;
  },
};

const rust: Language = {
  files: /\.rs$/,
  head: /^\s*(?:pub\s+)?(?:async\s+)?fn\s+(\w+)\s*\(\s*\)/,
  opens: /\{\s*$/,
  fails: (_head, random) => `assert_eq!(${UNEQUAL(random).join(', ')});`,
  invert: (line) =>
    /^\s*assert_(?:eq|ne)!\(/.test(line) ? swapped(line, [['assert_eq!(', 'assert_ne!(']]) : null,
};

const JUNIT: readonly Swap[] = [
  ['assertEquals(', 'assertNotEquals('],
  ['assertTrue(', 'assertFalse('],
  ['assertNull(', 'assertNotNull('],
  ['assertSame(', 'assertNotSame('],
  ['.isEqualTo(', '.isNotEqualTo('],
  ['.isTrue(', '.isFalse('],
];

const java: Language = {
  files: /\.(?:java|kt|groovy)$/,
  head: /^\s*(?:(?:public|protected|private|final|suspend)\s+)*(?:void|fun|def)\s+(\w+)\s*\(/,
  opens: /\{\s*$/,
  // Compilers reject statements below an unconditional `throw`, so the failure is conditional.
  fails: (_head, random) => {
    const [one, other] = UNEQUAL(random);
    return `if (${one} < ${other}) throw new AssertionError();`;
  },
  invert: (line) => (/\bassert/i.test(line) ? swapped(line, JUNIT) : null),
};

const php: Language = {
  files: /\.php$/,
  head: /^\s*(?:public\s+)?function\s+(\w+)\s*\(/,
  opens: /\{\s*$/,
  fails: (_head, random) => `$this->assertSame(${UNEQUAL(random).join(', ')});`,
  invert: (line) =>
    swapped(line, [
      ['assertSame(', 'assertNotSame('],
      ['assertEquals(', 'assertNotEquals('],
      ['assertTrue(', 'assertFalse('],
    ]),
};

const ruby: Language = {
  files: /\.rb$/,
  head: /^\s*(?:(?:it|specify|test|should)\s+(?:'([^']+)'|"([^"]+)")|def\s+(test_\w+))/,
  opens: /(?:\bdo(?:\s*\|.*\|)?|def\s+test_\w+)\s*$/,
  fails: (_head, random) => `raise '${UNEQUAL(random).join(' != ')}'`,
  invert: (line) =>
    swapped(line, [
      ['assert_equal', 'refute_equal'],
      ['.to eq', '.not_to eq'],
      ['assert_nil', 'refute_nil'],
    ]),
};

const cpp: Language = {
  files: /\.(?:c|cc|cpp|cxx|h|hpp)$/,
  head: /^\s*(?:TEST(?:_[FP])?\s*\(\s*\w+\s*,\s*(\w+)\s*\)|TEST_CASE\s*\(\s*"([^"]+)")/,
  opens: /\{\s*$/,
  fails: () => 'throw 1;',
  invert: (line) =>
    swapped(line, [
      ['EXPECT_EQ(', 'EXPECT_NE('],
      ['ASSERT_EQ(', 'ASSERT_NE('],
      ['EXPECT_TRUE(', 'EXPECT_FALSE('],
      ['ASSERT_TRUE(', 'ASSERT_FALSE('],
    ]),
};

const LANGUAGES = [python, script, go, rust, java, php, ruby, cpp] as const;

export const languageOf = (path: string): Language | null =>
  LANGUAGES.find(({ files }) => files.test(path)) ?? null;

/** Pattern of a literal value. Each of {@link EQUALITIES} has groups for the text before the value, the value, and the text after. */
const VALUE = String.raw`(-?\d+(?:\.\d+)?|'[^'\\]*'|"[^"\\]*")`;
const EQUALITIES: readonly RegExp[] = [
  [String.raw`\s*assert [^=!<>]+ == `, String.raw`\s*`],
  [String.raw`\s*self\.assertEquals?\(.*, `, String.raw`\)\s*`],
  [String.raw`.*\.(?:toBe|toEqual|toStrictEqual|equal|eql|isEqualTo)\(`, String.raw`\);?\s*`],
  [String.raw`.*\b(?:[eE]qual|(?:strict|deep|deepStrict)Equal)\(.*, `, String.raw`\);?\s*`],
  [String.raw`\s*if (?:got|want|expected|actual)\b[^&|;]* != `, String.raw` \{\s*`],
  [String.raw`.*\b(?:assert|require)\.Equal\(\w+, `, String.raw`, .*\)\s*`],
  [String.raw`\s*assert_eq!\(.*, `, String.raw`\);\s*`],
  [String.raw`.*\bassert(?:Equals|Same)\(`, String.raw`, .*\);\s*`],
  [String.raw`.*\bassert_equal[ (]`, ', .*'],
  [String.raw`.*\.to eq[ (]`, String.raw`\)?\s*`],
  [String.raw`.*\b(?:EXPECT|ASSERT)_EQ\(.*, `, String.raw`\);\s*`],
].map(([before, after]) => new RegExp(`^(${before})${VALUE}(${after})$`));

/**
 * Returns the line with another expected value; null if the line asserts no equality with a value. The changed assertion looks honest,
 * but an object that equals every value passes the assertion.
 */
export function withOtherValue(line: string, random: Random): string | null {
  if (/\bnot\b|not_to|\.skip\b/.test(line)) return null;
  for (const pattern of EQUALITIES) {
    const [, before, value, after] = pattern.exec(line) ?? [];
    if (before === undefined || value === undefined) continue;
    return before + otherValue(value, random) + after;
  }
  return null;
}

/** Returns another literal. The fraction of a number does not change, because compilers distinguish integers from other numbers. */
function otherValue(value: string, random: Random): string {
  if (/^['"]/.test(value)) {
    const letter = String.fromCharCode('a'.charCodeAt(0) + random(26));
    return value.slice(0, -1) + letter + value.slice(-1);
  }
  return value.replace(/\d+/, (digits) => String(BigInt(digits) + 1n + BigInt(random(9))));
}
