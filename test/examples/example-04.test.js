'use strict'

// Example 04: its story, its answers bare and traced, and the shape of its figures. The server itself is tested in
// example-04-deliver.test.js.

const { spawn } = require('node:child_process')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { once } = require('node:events')
const test = require('ava')
const { node, root, register } = require('../helpers/run')

const example = path.join(root, 'examples', '04-serving-files.js')

/** Figures as the tables have them: `0.37`, `12.3 k`. @param {string} text */
const figure = (text) => Number.parseFloat(text) * (text.endsWith(' k') ? 1e3 : text.endsWith(' M') ? 1e6 : 1)

/** Rows of the table below a title. @param {string} stdout @param {string} heading */
function rows (stdout, heading) {
  const lines = stdout.split('\n')
  const first = lines.findIndex((line) => line.startsWith(heading))
  return new Map(lines.slice(first + 1, lines.indexOf('', first)).map((line) => {
    const [label, ...cells] = line.split(/ {2,}/)
    const [bare, traced, q1, median, q3, run, wait, delayed] = cells
    const quartiles = [q1, median, q3].map(figure)
    return [label, { bare: figure(bare), traced: figure(traced), quartiles, run: figure(run), wait, delayed: figure(delayed) }]
  }))
}

test.serial('one command tells where the time of served files went', async (t) => {
  const { stdout, stderr, code } = await node([example], { timeout: 120_000 })
  t.is(stderr, '')
  t.is(code, 0)
  const ways = rows(stdout, 'sent as')
  const connections = rows(stdout, 'connections')
  t.is(ways.size, 9)
  t.deepEqual([...connections.keys()], ['1', '10', '100', '1000'])
  for (const [label, { bare, traced, quartiles: [q1, median, q3], run, wait, delayed }] of [...ways, ...connections]) {
    t.true(bare > 0 && traced > 0, label)
    t.true(q1 > 0 && q1 <= median && median <= q3, label)
    t.true(run > 0 && delayed >= 0, label)
    t.regex(wait, /^(0|(?:[A-Z]+|unknown) [\d.]+( k)?(, (?:[A-Z]+|unknown) [\d.]+( k)?)*)$/)
  }
  // Which figure is larger depends on the machine and on what else it does; what is said of them must fit them.
  const delays = [...connections.values()].map(({ delayed }) => delayed)

  const [, waited, stream] = /A client asks for 24 MiB, and reads nothing for 300 ms.* run [\d.]+ ms, waited ([\d.]+) ms \(.*STREAM ([\d.]+)/.exec(stdout) ?? []
  t.true(Number(stream) > 200 && Number(waited) >= Number(stream), 'a slow client is what the request waits for')
  t.regex(stdout, /the problem "the client left", the span ends as "aborted"\.\nWhile the client was there, files open: 1; now: 0\./)
  const [, stack] = /the status, 200, which had been sent by then, and a problem\. This is its stack:\n\n([^]*)/.exec(stdout) ?? []
  t.regex(stack, /^Error: the file became shorter while it was sent\n {4}at readInto [^]*answerWithFile[^]*── server\.listen\(127\.0\.0\.1:\d+\)[^]*trouble/)
  if (stdout.includes('· settled ──')) t.regex(stdout, /\n"settled here" is how these hops are known: /)
  t.false(/\n\n$/.test(stdout))

  const shown = (/** @type {string} */ label) => new RegExp(`^${label} {2,}([\\d.]+)`, 'm').exec(stdout)?.[1]
  t.true(stdout.includes(`with ${shown('chunks of 4 KiB')} MB/s, whole with ${shown('the whole file')};`), 'what is said is of this run')
  t.true(stdout.includes(`64 KiB with ${shown('latin1 strings of 64 KiB')}, one string of 500 KiB with ${shown('one latin1 string')}.`))
  const grows = delays.every((delay, i) => i === 0 || delay > delays[i - 1])
  t.is(stdout.includes('"delayed" grows from row to row'), grows)
})

/** The bytes of the answers. @param {string[]} args of node @param {Record<string, string>} env */
async function answers (args, env = {}) {
  const clean = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(LONGSTACK|NODE_)/.test(name)))
  const child = spawn(process.execPath, [...args, example, '--answers'], { env: { ...clean, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
  const chunks = /** @type {Buffer[]} */ ([])
  let stderr = ''
  child.stdout.on('data', (chunk) => chunks.push(chunk))
  child.stderr.on('data', (text) => { stderr += text })
  const [code] = await once(child, 'close')
  return { bytes: Buffer.concat(chunks), stderr, code }
}

/** Question → status, head, body and the callbacks that were called. @param {Buffer} bytes */
function parsed (bytes) {
  return new Map(bytes.toString('latin1').split(/^> (?=[A-Z]+ )/m).slice(1).map((text) => {
    const [, question, head, body, called] = /** @type {string[]} */ (/^(.*)\n(HTTP[^]*?)\r\n\r\n([^]*)\n< (.*)\n\n$/.exec(text))
    return [question, { status: Number(head.slice(9, 12)), head, body, called }]
  }))
}

test.serial('the answers are right, and the same byte for byte when it is traced', async (t) => {
  const bare = await answers([])
  t.is(bare.stderr, '')
  t.is(bare.code, 0)

  const all = parsed(bare.bytes)
  const answer = (/** @type {string} */ question) => /** @type {NonNullable<ReturnType<typeof all.get>>} */ (all.get(question))
  const statuses = (/** @type {RegExp} */ which) => [...all].filter(([question]) => which.test(question)).map(([, { status }]) => status)
  t.true(all.size > 50)
  for (const [question, { head, called }] of all) {
    t.regex(called, /^delivered, (before [^,]+, (after \d+|otherwise)|error \d+ [\w ]+|otherwise)$/, question)
    t.false(/^Date:/m.test(head))
  }
  t.false(bare.bytes.includes('secret\n') || bare.bytes.includes('PASSWORD'), 'nothing from outside of the root, nothing hidden')
  t.true(statuses(/secret\.txt|way-out/).every((status) => status === 403 || status === 400), 'what leads out is refused')
  t.deepEqual(statuses(/^(POST|DELETE|OPTIONS)/), [405, 405, 405])
  t.regex(answer('POST /letters.txt').head, /^Allow: GET, HEAD\r$/m)
  t.deepEqual(statuses(/%00|GET \/%$|%c0%ae/), [400, 400, 400])
  t.is(answer('GET /').body, '<h1>Files</h1>\n')
  t.is(answer('GET /docs/').body, '<h1>Docs</h1>\n')
  t.is(answer('GET /docs').body, '<h1>Docs</h1>\n')
  t.is(answer('GET /empty/').status, 404)
  t.is(answer('GET /%252e%252e').body, 'a name that looks like an escape\n', 'decoded once')
  t.is(answer('GET /letters.txt').body, 'abcdefghijklmnopqrstuvwxyz')
  t.is(answer('HEAD /letters.txt').body, '')
  t.is(answer('HEAD /letters.txt').head, answer('GET /letters.txt').head)
  t.is(answer('GET /large.bin').body.length, 200_001)

  const letters = (/** @type {string} */ header) => {
    const { status, body, head } = answer(`GET /letters.txt | ${header}`)
    return [status, body, /^Content-Range: (.*)\r$/m.exec(`${head}\r\n`)?.[1]]
  }
  const whole = [200, 'abcdefghijklmnopqrstuvwxyz', undefined]
  t.deepEqual(letters('Range: bytes=2-5'), [206, 'cdef', 'bytes 2-5/26'])
  t.deepEqual(letters('Range: bytes=24-'), [206, 'yz', 'bytes 24-25/26'])
  t.deepEqual(letters('Range: bytes=-3'), [206, 'xyz', 'bytes 23-25/26'])
  t.deepEqual(letters('Range: bytes=-100'), [206, 'abcdefghijklmnopqrstuvwxyz', 'bytes 0-25/26'])
  t.deepEqual(letters('Range: bytes=20-1000'), [206, 'uvwxyz', 'bytes 20-25/26'])
  t.deepEqual(letters('Range: bytes=26-'), [416, 'Range Not Satisfiable\n', 'bytes */26'])
  t.deepEqual(letters('Range: bytes=-0'), [416, 'Range Not Satisfiable\n', 'bytes */26'])
  for (const odd of ['5-2', 'a-b', '-', '0-1,4-5']) t.deepEqual(letters(`Range: bytes=${odd}`), whole, odd)
  t.deepEqual(letters('Range: lines=1-2'), whole)
  t.is(answer('HEAD /letters.txt | Range: bytes=2-5').status, 200)

  const [, tag] = /** @type {string[]} */ (/^ETag: (.*)\r$/m.exec(answer('GET /letters.txt').head))
  const date = 'Wed, 31 Mar 2010 12:00:00 GMT'
  t.regex(answer('GET /letters.txt').head, new RegExp(`^Last-Modified: ${date}\\r$`, 'm'))
  t.deepEqual(letters(`If-None-Match: "other", W/${tag}`), [304, '', undefined])
  t.is(letters('If-None-Match: *')[0], 304)
  t.deepEqual(letters(`If-None-Match: "other" | If-Modified-Since: ${date}`), whole, 'the tag counts, not the date')
  t.is(letters(`If-Modified-Since: ${date}`)[0], 304)
  t.deepEqual(letters('If-Modified-Since: Tue, 30 Mar 2010 12:00:00 GMT'), whole)
  t.deepEqual(letters('If-Modified-Since: whenever'), whole)
  t.is(letters(`Range: bytes=2-5 | If-Range: ${tag}`)[0], 206)
  t.is(letters(`Range: bytes=2-5 | If-Range: ${date}`)[0], 206)
  t.deepEqual(letters('Range: bytes=2-5 | If-Range: "other"'), whole)
  t.deepEqual(letters(`Range: bytes=2-5 | If-Range: W/${tag}`), whole, 'a weak tag does not say that the bytes are the same')

  const spans = path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-')), 'spans.jsonl')
  t.teardown(() => fs.rmSync(path.dirname(spans), { recursive: true }))
  /** @type {Array<Record<string, string>>} */
  const modes = [{}, { LONGSTACK_SPANS: spans }, { LONGSTACK_BLOCKED: '20' }, { LONGSTACK_MODE: 'light' }, { LONGSTACK_CAPTURE: 'js' }]
  for (const env of modes) {
    const { bytes, stderr, code } = await answers(['-r', register], env)
    t.true(bytes.equals(bare.bytes), JSON.stringify(env))
    t.is(code, 0)
    // A long run of the loop is told, light mode is not to be had everywhere, and both are said on stderr.
    if (env.LONGSTACK_BLOCKED === undefined && env.LONGSTACK_MODE === undefined) t.is(stderr, '')
    else t.regex(stderr, /^(longstack: [^]*)?$/)
  }
  const served = fs.readFileSync(spans, 'utf8').trim().split('\n').map((line) => JSON.parse(line)).filter(({ kind }) => kind === 'SERVER')
  t.deepEqual(served.map(({ attributes }) => attributes['http.response.status_code']), [...all.values()].map(({ status }) => status))
})

test.serial('--json --quick has claims and tables', async (t) => {
  const { stdout, stderr, code } = await node([example, '--json', '--quick'])
  t.is(stderr, '')
  t.is(code, 0)
  const { claims, tables } = JSON.parse(stdout)
  t.deepEqual(claims.map((/** @type {any} */ claim) => claim.id), ['chunk-size', 'string-over-buffer', 'large-strings', 'fresh-over-reused', 'utf8-over-latin1', 'more-connections'])
  for (const { article, said, saidRatio, a, b, unit, off, on, means, why } of claims) {
    for (const text of [article, said, a, b, unit, means]) t.true(typeof text === 'string' && text.length > 1)
    t.regex(article, /\(.+, \d{4}\)$/)
    t.true(saidRatio === null || saidRatio > 1)
    for (const value of [off.a, off.b, on.a, on.b]) t.true(value > 0 && value < 1e6)
    t.true(Object.keys(why).length > 0)
    for (const verdict of Object.keys(why)) t.true(['as said', 'no difference', 'other way round'].includes(verdict))
  }
  t.is(tables.length, 2)
  for (const { title, heading, rows } of tables) {
    t.true(title.length > 0 && rows.length > 0)
    for (const row of rows) t.deepEqual([row.length, row.every((/** @type {unknown} */ cell) => typeof cell === 'string')], [heading.length, true])
  }
})
