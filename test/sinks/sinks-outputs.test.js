'use strict'

// Outputs of spans as users configure them, the spans that each output gets, and the content of a line.

const fs = require('node:fs')
const path = require('node:path')
const test = require('ava')
const { parseOutputs } = require('../../lib/sinks/outputs')
const { inSample, weightFor } = require('../../lib/sinks/sinks')
const { drive, folder, numbers, read } = require('../helpers/sinks')

test('outputs may be a string, an object or a list of both', (t) => {
  t.deepEqual(parseOutputs('spans.jsonl'), [{ to: 'spans.jsonl' }])
  t.deepEqual(parseOutputs('all.jsonl;sample=0.1;keep=500, slow.jsonl;slower=100 ,errors.jsonl; errors,-, http://collector:4318'), [
    { to: 'all.jsonl', sample: 0.1, keep: 500 }, { to: 'slow.jsonl', slower: 100 }, { to: 'errors.jsonl', errors: true }, { to: '-' }, { to: 'http://collector:4318' }
  ])
  t.deepEqual(parseOutputs({ to: 'a,b;c', slower: 0.5, errors: false, sample: undefined }), [{ to: 'a,b;c', slower: 0.5 }])
  t.deepEqual(parseOutputs(['a;errors=true', { to: 'b', sample: 0 }]), [{ to: 'a', errors: true }, { to: 'b', sample: 0 }])
})

test('a file name may contain "=" and ":"; drive letters and file: URLs are files', (t) => {
  t.deepEqual(parseOutputs('a=b:c.jsonl;sample=.5'), [{ to: 'a=b:c.jsonl', sample: 0.5 }])
  t.deepEqual(parseOutputs('C:\\logs\\spans.jsonl, file:///var/log/spans.jsonl'), [{ to: 'C:\\logs\\spans.jsonl' }, { to: 'file:///var/log/spans.jsonl' }])
})

/** @type {Array<[given: unknown, code: string, sentence: RegExp]>} */
const mistakes = [
  ['', 'INVALID_OUTPUT', /^Cannot write spans to "": expected a file, "-" or an http address/],
  [' , ', 'INVALID_OUTPUT', /expected a file/],
  [[], 'INVALID_OUTPUT', /got|an array/],
  [5, 'INVALID_OUTPUT', /^Cannot write spans to 5/],
  [null, 'INVALID_OUTPUT', /^Cannot write spans to null/],
  [{ slower: 5 }, 'INVALID_OUTPUT', /^Cannot write spans to undefined/],
  [{ to: '  ' }, 'INVALID_OUTPUT', /expected a file/],
  ['a\0b', 'INVALID_OUTPUT', /expected a file/],
  [';errors', 'INVALID_OUTPUT', /expected a file/],
  ['a;slwer=5', 'UNKNOWN_SETTING', /Unknown setting "slwer" .* Did you mean "slower"\?/],
  ['a;__proto__=5', 'UNKNOWN_SETTING', /Unknown setting "__proto__"/],
  [{ to: 'a', error: true }, 'UNKNOWN_SETTING', /Did you mean "errors"\?/],
  ['a;sample=1.5', 'INVALID_SETTING', /"sample" .* must be a ratio from 0 to 1\. Received 1\.5/],
  ['a;sample=10%', 'INVALID_SETTING', /Received "10%"/],
  ['a;slower', 'INVALID_SETTING', /a number of milliseconds, 0 or more\. Received ""/],
  ['a;slower=-1', 'INVALID_SETTING', /Received "-1"/],
  [{ to: 'a', slower: '5' }, 'INVALID_SETTING', /Received "5"/],
  [{ to: 'a', sample: NaN }, 'INVALID_SETTING', /Received NaN/],
  ['a;errors=5', 'INVALID_SETTING', /true or false\. Received "5"/],
  ['a;keep=5', 'INVALID_SETTING', /used together with sample \("sample=0\.1;keep=500"/],
  ['a, ./a', 'INVALID_OUTPUT', /"\.\/a": it is listed twice/],
  ['-,/dev/stdout', 'INVALID_OUTPUT', /listed twice/],
  ['http://c:4318,http://C:4318/', 'INVALID_OUTPUT', /listed twice/],
  ['htp://collector:4318', 'INVALID_OUTPUT', /htp: is none of http:, https: and file:/],
  ['http://', 'INVALID_OUTPUT', /it is not a valid address/],
  ['file://host/spans', 'INVALID_OUTPUT', /not the address of a local file/]
]

test('a mistake is one clear sentence with a code', (t) => {
  for (const [given, code, sentence] of mistakes) {
    const error = t.throws(() => parseOutputs(given), { code: `LONGSTACK_ERR_${code}`, instanceOf: TypeError }, String(given))
    t.regex(error.message, sentence, String(given))
    t.false(error.message.includes('\n'))
  }
})

test('a password in an address is not printed', (t) => {
  const { message } = t.throws(() => parseOutputs('http://me:secret@c/?token=secret, http://me:secret@c/?token=secret'))
  t.false(message.includes('secret'), message)
})

test('sampling uses the last 56 bits of the trace id, and a small sample is part of a large one', (t) => {
  const low = `${'f'.repeat(18)}${'0'.repeat(14)}`
  const high = `${'0'.repeat(18)}${'f'.repeat(14)}`
  t.false(inSample(low, 0.999))
  t.true(inSample(high, 0.001))
  t.true(inSample(low, 1))
  t.false(inSample(high, 0))
  t.true(inSample(`${'0'.repeat(18)}80000000000000`, 0.5))
  t.false(inSample(`${'0'.repeat(18)}7fffffffffffff`, 0.5))

  const ids = Array.from({ length: 20_000 }, () => require('node:crypto').randomBytes(16).toString('hex'))
  const tenth = ids.filter((id) => inSample(id, 0.1))
  t.true(Math.abs(tenth.length - 2000) < 300, `${tenth.length} of 20000`) // seven standard deviations
  t.true(tenth.every((id) => inSample(id, 0.25)))
})

test('an output takes the spans that its settings select, and knows each line\'s weight', (t) => {
  const out = 'f'.repeat(18) + '0'.repeat(14)
  const into = 'f'.repeat(32)
  const weight = (output, ms, failed, traceId) => weightFor({ to: '-', ...output }, { ms, failed, traceId })
  t.is(weight({}, 0, false, out), 1)
  t.deepEqual([99, 100].map((ms) => weight({ slower: 100 }, ms, false, out)), [0, 1])
  t.deepEqual([false, true].map((failed) => weight({ errors: true }, 5, failed, out)), [0, 1])
  t.deepEqual([false, true].map((failed) => weight({ errors: true, slower: 9 }, 5, failed, out)), [0, 0])
  t.deepEqual([out, into].map((id) => weight({ sample: 0.1 }, 5, true, id)), [0, 0.1])
  const kept = { sample: 0.1, keep: 500 }
  t.deepEqual([weight(kept, 5, false, out), weight(kept, 5, false, into)], [0, 0.1])
  t.deepEqual([weight(kept, 500, false, out), weight(kept, 500, false, into), weight(kept, 5, true, into)], [1, 1, 1], 'each slow or failed one is there, and stands for itself')
})

test('several outputs at once have their own thresholds and ratios', async (t) => {
  const dir = folder(t)
  const { told, code } = await drive(`
    process.chdir(${JSON.stringify(dir)})
    const out = sinks('all.jsonl, slow.jsonl;slower=50, errors.jsonl;errors, tenth.jsonl;sample=0.1;keep=90, half.jsonl;sample=0.5')
    process.chdir('/')
    for (let i = 0; i < 1000; i++) {
      out.write(span(i, { ms: i % 100, failed: i % 50 === 0, traceId: hex(i, 18) + hex(Math.floor(i / 1000 * 2 ** 52), 13) + '0' }))
    }
    tell({ stats: out.stats(), warned })`)
  t.is(code, 0)
  const file = (name) => read(path.join(dir, name))
  const range = Array.from({ length: 1000 }, (_, i) => i)
  t.deepEqual(numbers(file('all.jsonl')), range)
  t.deepEqual(numbers(file('slow.jsonl')), range.filter((i) => i % 100 >= 50))
  t.deepEqual(numbers(file('errors.jsonl')), range.filter((i) => i % 50 === 0))
  t.deepEqual(numbers(file('half.jsonl')), range.filter((i) => i >= 500))
  const spared = (i) => i % 100 >= 90 || i % 50 === 0
  const tenth = file('tenth.jsonl')
  t.deepEqual(numbers(tenth), range.filter((i) => i >= 900 || spared(i)))
  for (const { attributes } of tenth) t.is(attributes['longstack.sample_ratio'], spared(attributes.i) ? undefined : 0.1)
  t.true(file('half.jsonl').every(({ attributes }) => attributes['longstack.sample_ratio'] === 0.5))
  t.true(file('all.jsonl').every(({ attributes }) => !('longstack.sample_ratio' in attributes)))
  const [{ stats, warned }] = told
  t.deepEqual(warned, [])
  t.deepEqual(stats.outputs.map(({ to, written, dropped }) => [to, written, dropped]),
    [['all.jsonl', 1000, 0], ['slow.jsonl', 500, 0], ['errors.jsonl', 20, 0], ['tenth.jsonl', tenth.length, 0], ['half.jsonl', 500, 0]])
  t.is(stats.written, 2020 + tenth.length)
  t.is(fs.statSync(path.join(dir, 'all.jsonl')).mode & 0o777, 0o600)
})

test('a record that no output takes is not built', async (t) => {
  const dir = folder(t)
  const { told } = await drive(`
    const out = sinks(${JSON.stringify(`${dir}/slow.jsonl;slower=50, ${dir}/none.jsonl;sample=0`)})
    let built = 0
    out.write({ ...span(1), record () { built++ } })
    tell({ built })`)
  t.is(told[0].built, 0)
})

test('a value that is not JSON becomes a sentence, without an effect on the program', async (t) => {
  const dir = folder(t)
  const { told, code } = await drive(`
    const out = sinks(${JSON.stringify(`${dir}/a.jsonl, ${dir}/b.jsonl;sample=1, ${dir}/c.jsonl;sample=0.9`)})
    const cycle = {}; cycle.cycle = cycle
    const traceId = 'f'.repeat(32)
    out.write(span(1, { traceId, attributes: { big: 1n, cycle, thrown: { toJSON () { throw new Error('no\\nJSON') } }, odd: { toJSON () { throw null } }, fine: 'x' } }))
    const attributes = { i: 2, fine: 'y' }
    Object.defineProperty(attributes, 'getter', { enumerable: true, get () { throw new Error('not yours') } })
    out.write({ ...span(2, { traceId }), record: () => ({ ...span(2).record(), attributes }) })
    out.write(span(3, { traceId, events: [{ name: 'exception', attributes: { big: 1n } }] }))
    out.write({ ...span(4, { traceId }), record () { throw new Error('no record') } })
    out.write(span(5, { traceId, attributes: { text: 'a\\u2028b\\u2029c\\nd\\ud800', f () {}, nan: NaN } }))
    out.write({ ...span(6, { traceId }), record: () => ({ ...span(6).record(), attributes: undefined }) })
    tell({ stats: out.stats(), warned })`)
  t.is(code, 0)
  const lines = read(path.join(dir, 'a.jsonl'))
  t.is(lines.length, 5)
  const [first, second, third, fifth] = lines
  t.regex(first.attributes.big, /^not written: .*BigInt/)
  t.regex(first.attributes.cycle, /^not written: .*circular/)
  t.is(first.attributes.thrown, 'not written: no')
  t.is(first.attributes.odd, 'not written: null')
  t.is(first.attributes.fine, 'x')
  t.is(second.attributes.getter, 'not written: not yours')
  t.is(second.attributes.fine, 'y')
  t.regex(third.events[0].attributes.big, /^not written/)
  t.is(fifth.attributes.text, 'a\u2028b\u2029c\nd\ud800')
  t.false(/[\u2028\u2029]/.test(fs.readFileSync(path.join(dir, 'a.jsonl'), 'utf8')))
  t.deepEqual(read(path.join(dir, 'b.jsonl')), lines)
  t.deepEqual(read(path.join(dir, 'c.jsonl')).map(({ attributes: { 'longstack.sample_ratio': ratio, ...rest } }) => [ratio, rest]),
    lines.map(({ attributes = {} }) => [0.9, attributes]))
  const [{ stats, warned }] = told
  t.deepEqual(warned, [])
  t.deepEqual(stats.outputs.map(({ written, dropped }) => [written, dropped]), [[5, 1], [5, 1], [5, 1]])
  t.is(stats.replaced, 3 * 6, 'once for each line')
})

test('an endlessly deep attribute becomes a sentence, unless Node can write it', async (t) => {
  const dir = folder(t)
  const { code, told } = await drive(`
    const out = sinks(${JSON.stringify(`${dir}/a.jsonl`)})
    let deep = []; for (let i = 0; i < 50000; i++) deep = [deep]
    out.write(span(1, { attributes: { deep, fine: 'x' } }))
    tell({ stats: out.stats() })`)
  t.is(code, 0)
  const [{ attributes: { deep, fine } }] = read(path.join(dir, 'a.jsonl'))
  t.is(fine, 'x')
  if (told[0].stats.replaced === 1) t.regex(deep, /^not written: .*stack/)
  else t.true(Array.isArray(deep))
})

test('a line is at most 1 MiB, and says if it was cut', async (t) => {
  const dir = folder(t)
  const { code, told } = await drive(`
    const out = sinks(${JSON.stringify(`${dir}/a.jsonl`)})
    out.write(span(1, { attributes: { 'code.stacktrace': 'x'.repeat(3 << 20), 'http.route': '/r' } }))
    out.write(span(2, { attributes: { wide: 'ä'.repeat(600000), list: Array.from({ length: 300000 }, (_, i) => i) } }))
    const many = {}; for (let i = 0; i < 200000; i++) many['key' + i] = 'value ' + i
    out.write(span(3, { attributes: many }))
    out.write(span(4, { attributes: { tree: many } }))
    out.write(span(5, { attributes: { fits: 'x'.repeat(1 << 19) } }))
    tell({ stats: out.stats() })`)
  t.is(code, 0)
  const text = fs.readFileSync(path.join(dir, 'a.jsonl'), 'utf8')
  for (const line of text.split('\n')) t.true(Buffer.byteLength(line) < 1 << 20)
  const lines = read(path.join(dir, 'a.jsonl'))
  t.deepEqual(numbers(lines), [1, 2, 3, 4, 5])
  t.deepEqual(lines.map(({ attributes }) => attributes['longstack.shortened']), [true, true, true, true, undefined])
  t.is(lines[0].attributes['http.route'], '/r')
  t.true(lines[0].attributes['code.stacktrace'].endsWith('x…'))
  t.is(lines[3].name, 'GET /n/4')
  t.is(told[0].stats.dropped, 0)
})
