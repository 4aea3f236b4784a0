'use strict'

// Output of console.log and util.inspect for values that longstack returns, and the data that they remain.

const { stripVTControlCharacters } = require('node:util')
const test = require('ava')
const { program, root } = require('../helpers/run')

const START = `
  const trace = require(${JSON.stringify(root)})
  const assert = require('node:assert')
  const { inspect } = require('node:util')
  const net = require('node:net')
  const server = net.createServer().listen(0, '127.0.0.1', function openPool () {
    const socket = net.connect(server.address().port, '127.0.0.1')
    socket.on('connect', function ready () {
      const why = trace.why(socket)
      run(why)
      socket.destroy()
      server.close()
    })
  })
`

/**
 * @param {import('ava').ExecutionContext} t
 * @param {string} body of run (why)
 */
async function printed (t, body) {
  const { stdout, stderr, code } = await program(`${START} function run (why) { ${body} }`)
  t.is(stderr, '')
  t.is(code, 0)
  return stdout
}

test('console.log prints the text of a report', async (t) => {
  const stdout = await printed(t, 'console.log(why); console.log(String(why)); console.log("%o", why); console.log("%O", why)')
  const texts = stdout.split(/(?=^TCP connection)/m)
  t.is(texts.length, 4)
  t.regex(texts[0], /^TCP connection, client to .* · TCPWRAP\n {2}open, .*\n {2}opened by\n {2}── net\.connect.* ──\n {4}at openPool \(/)
  t.deepEqual(new Set(texts.map((text) => text.replace(/[\d.]+ m?s\b/g, 'N ms'))).size, 1, stdout)
})

test('text conversion gives the text of lists and reports', async (t) => {
  const stdout = await printed(t, `
    async function waitForReply () { await new Promise((resolve) => { globalThis.keep = resolve }) }
    const before = trace.snapshot()
    waitForReply()
    const timer = setTimeout(function late () {}, 1000)
    setTimeout(() => {
      const say = (name, value) => console.log('#' + name + '\\n' + \`\${value}\`)
      const pending = trace.pending()
      say('pending', pending)
      say('entry', pending.find((wait) => \`\${wait}\`.includes('waitForReply')))
      say('handles', trace.handles(['TIMER']))
      say('diff', trace.diff(before))
      say('chain', trace.chain())
      say('current', trace.current())
      say('stats', trace.stats())
      say('doctor', trace.doctor())
      say('none', trace.handles(['WORKER']))
      say('changed', [...trace.handles(['TIMER'])].concat('mine').map((value) => typeof value))
      const isSame = Object.keys(pending).join() === pending.map((_, i) => i).join() && JSON.stringify(trace.chain()).startsWith('[{')
      say('data', isSame && structuredClone({ ...trace.stats() }).toString())
      clearTimeout(timer)
    }, 10)`)
  const texts = new Map(stdout.trimEnd().split(/^#/m).slice(1).map((text) => text.split(/\n(.*)/s, 2)).map(([name, text]) => [name, text]))
  t.regex(String(texts.get('pending')), /waitForReply/)
  t.regex(String(texts.get('entry')), /^1 × .*waitForReply/)
  t.regex(String(texts.get('handles')), /^timer, after 1000 ms, calls late\(\)/m)
  t.regex(String(texts.get('diff')), /since the snapshot/)
  t.regex(String(texts.get('chain')), /── setTimeout\(10\)/)
  t.regex(String(texts.get('current')), /── setTimeout\(10\)/)
  t.regex(String(texts.get('stats')), /^engine +/m)
  t.regex(String(texts.get('doctor')), /engine/)
  t.is(texts.get('none'), '\n')
  t.is(texts.get('data'), '[object Object]')
  t.false(stdout.replace(/#data.*/s, '').includes('[object'))
})

test('a nested report is indented; nested too deeply, it is a title', async (t) => {
  const stdout = await printed(t, `
    console.log({ inner: { why } })
    console.log(inspect({ why }, { depth: 0 }))
    console.log(inspect(why, { depth: 0 }) === String(why))
    console.log(inspect([trace.chain(socketChain = why.opened && why)], { depth: 0 }).split('\\n').length)`
    .replace('socketChain = why.opened && why', ''))
  t.regex(stdout, /^\{\n {2}inner: \{\n {4}why: TCP connection, .*\n {6}open, .*\n {6}opened by\n {6}── net/)
  t.regex(stdout, /^\{\n {2}why: \[TCP connection, client to [\d.:]+, from [\d.:]+\]\n\}\ntrue$/m)
})

test('handles and chains are arrays, printed as text unless modified', async (t) => {
  const stdout = await printed(t, `
    const handles = trace.handles(['TCP'])
    const chain = trace.chain()
    const say = (name, value) => console.log('#' + name + '\\n' + inspect(value))
    say('handles', handles)
    say('chain', chain)
    say('opened', why.opened)
    say('none', trace.handles(['ZLIB']))
    say('mapped', chain.map(({ type }) => type))
    say('changed', chain.concat(1).length === chain.length + 1 && (chain[0] = { other: true }) && chain)
    console.log('#arrays', Array.isArray(handles), Array.isArray(chain), JSON.parse(JSON.stringify(handles)).length === handles.length)`)
  const parts = Object.fromEntries(stdout.split(/^#/m).slice(1).map((part) => [part.split(/\W/, 1)[0], part.slice(part.indexOf('\n') + 1)]))
  t.is(parts.handles.split('\n\n').length, 3, parts.handles)
  t.regex(parts.handles, /^TCP server at .* · TCPSERVERWRAP\n/)
  t.regex(parts.chain, /^ {2}── net\.connect\(127.* ──\n {4}at openPool \(.*\n {2}── server\.listen /)
  t.regex(parts.opened, /^ {2}── net\.connect\(127.* ──\n {4}at openPool \(/)
  t.is(parts.none, '[]\n')
  t.is(parts.mapped, "[ 'TCPCONNECTWRAP', 'TickObject' ]\n")
  t.regex(parts.changed, /^\[\n {2}\{ other: true \},\n {2}\{\n {4}asyncId: \d+,/)
  t.regex(stdout, /^#arrays true true true$/m)
})

test('figures, the diagnosis and the running context are printed as text', async (t) => {
  const stdout = await printed(t, `
    console.log(trace.stats())
    console.log(inspect(trace.doctor()) === trace.doctor().text)
    console.log(trace.current())
    console.log(inspect([trace.current(), trace.stats()], { depth: 0 }))`)
  t.regex(stdout, /^tracing +on\nengine +(native|js) \(.*\n/)
  t.regex(stdout, /^budget +\d+ % of 64 MiB used$/m)
  t.regex(stdout, /^true\n {2}── net\.connect\(127\.0\.0\.1:\d+\) · [\d.]+ m?s earlier ──\n {4}at openPool \(/m)
  t.regex(stdout, /^\[ \[net\.connect\(127\.0\.0\.1:\d+\)\], \[Stats\] \]$/m)
})

test('colours appear only on request', async (t) => {
  const stdout = await printed(t, `
    console.log(JSON.stringify([why, trace.handles(), trace.chain()].map((value) => [inspect(value), inspect(value, { colors: true })])))`)
  for (const [plain, coloured] of JSON.parse(stdout)) {
    t.false(plain.includes('\u001b'))
    t.true(coloured.includes('\u001b[36m  ── net.connect'))
    t.is(stripVTControlCharacters(coloured).replace(/[\d.]+ m?s\b/g, 'N ms'), plain.replace(/[\d.]+ m?s\b/g, 'N ms'), 'no line of source: it is no terminal')
  }
})

test('the data are unchanged: no extra key, and they can be compared, cloned and spread', async (t) => {
  const stdout = await printed(t, `
    const values = { why, handles: trace.handles(), chain: trace.chain(), stats: trace.stats(), doctor: trace.doctor() }
    for (const [name, value] of Object.entries(values)) {
      const copy = Array.isArray(value) ? [...value] : { ...value }
      assert.deepStrictEqual(value, copy)
      assert.deepEqual(JSON.parse(JSON.stringify(value)), JSON.parse(JSON.stringify(copy)))
      const clone = structuredClone(value)
      assert.deepStrictEqual(Object.keys(clone), Object.keys(value))
      assert.ok(Reflect.ownKeys(copy).every((key) => typeof key === 'string'))
      assert.ok(!inspect(value, { customInspect: false }).includes('inspect.custom'))
    }
    let message
    try {
      assert.deepStrictEqual({ ...why, type: 'x' }, why)
    } catch (error) {
      message = error.message
    }
    console.log(message)
    console.dir(why.opened.slice(0, 1))
    console.dir(why)`)
  t.regex(stdout, /^\+ +type: 'x',?\n- +type: 'TCPWRAP',?$/m, 'a diff shows the data')
  t.regex(stdout, /what: 'TCP connection, client/)
})
