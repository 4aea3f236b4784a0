'use strict'

// The answers of the articles' programs are correct, and equal byte for byte bare and traced.

const test = require('ava')
const { equalAnswers, inOrder } = require('../helpers/articles')

test.serial('01-intercept: wherever a request is split, only the header is removed', async (t) => {
  const { answers, spans } = await equalAnswers(t, '01-intercept')
  const cut = [...answers.matchAll(/cut at (\d+) places: (\d+) answers equal; byte by byte: equal/g)]
  t.is(cut.length, 7)
  for (const [, places, equal] of cut) t.is(places, equal)
  t.false(/"customheader"/i.test(answers))
  t.is(answers.match(/customHeader/g)?.length, 6, 'in bodies, in a value, and past the upgrade')
  t.true(answers.includes('HTTP/1.1 400 Bad Request'))
  t.true(spans.some(({ name, kind }) => kind === 'SERVER' && name.includes('/chunks')))
})

test.serial('02-tcp-net-http: every layer sends the same bytes, in both styles', async (t) => {
  const { answers, spans } = await equalAnswers(t, '02-tcp-net-http')
  const head = 'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n'
  const answer = `${head}Connection: keep-alive\r\nKeep-Alive: timeout=5\r\n\r\nHello, world\n`
  t.is(answers, answer.repeat(8 * 3 * 2))
  const requests = spans.filter(({ name }) => name === 'GET /')
  t.is(requests.length, 8 * 2, 'http has a span for each request, the others none')
})

test.serial('03-primes-in-nexttick: sums and order are right', async (t) => {
  const { answers } = await equalAnswers(t, '03-primes-in-nexttick')
  const sums = [...answers.matchAll(/^(hoisted|inline|passed): (\d+) primes in 500 ticks$/gm)]
  t.deepEqual(sums.map(([, , sum]) => Number(sum)), Array(3).fill(primesBelowAll(500)))
  for (const way of ['process.nextTick', 'queueMicrotask', 'setImmediate', 'promise.then', 'await']) {
    const order = ['the last callback', 'an immediate set before']
    if (way === 'setImmediate') order.reverse()
    t.true(answers.includes(`${way}: ${order.join(', then ')}\n`), way)
  }
})

/** Counts the primes up to each limit by trial division, all limits added up. @param {number} max */
function primesBelowAll (max) {
  let sum = 0
  for (let n = 2; n <= max; n++) {
    let divisor = 2
    while (n % divisor !== 0) divisor++
    if (divisor === n) sum += max - n + 1 // it is below that many limits
  }
  return sum
}

test.serial('04-serving-files: good and bad requests are answered', async (t) => {
  const { answers, spans } = await equalAnswers(t, '04-serving-files')
  /** @type {Map<string, { status: number, head: string, body: string, called: string }>} */
  const exchanges = new Map(answers.split(/^> (?=[A-Z]+ )/m).slice(1).map((text) => {
    const parts = /^(.*)\n(HTTP[^]*?)\r\n\r\n([^]*)\n< (.*)\n\n$/.exec(text)
    const [, request, head, body, called] = /** @type {string[]} */ (parts)
    return [request, { status: Number(head.slice(9, 12)), head, body, called }]
  }))
  t.true(exchanges.size > 50)
  for (const [request, { head, called }] of exchanges) {
    t.regex(called, /^delivered, (before [^,]+, (after \d+|otherwise)|error \d+ [\w ]+|otherwise)$/, request)
    t.false(/^Date:/m.test(head))
  }
  t.false(/secret\n|PASSWORD/.test(answers), 'nothing from outside of the root, nothing hidden')

  const answer = (/** @type {string} */ request) => exchanges.get(request) ?? t.fail(request)
  const statuses = (/** @type {RegExp} */ pattern) => {
    return [...exchanges].filter(([request]) => pattern.test(request)).map(([, { status }]) => status)
  }
  t.true(statuses(/secret\.txt|way-out/).every((status) => [400, 403].includes(status)))
  t.deepEqual(statuses(/^(POST|DELETE|OPTIONS)/), [405, 405, 405])
  t.regex(answer('POST /letters.txt').head, /^Allow: GET, HEAD\r$/m)
  t.deepEqual(statuses(/%00|GET \/%$|%c0%ae/), [400, 400, 400])
  t.is(answer('GET /').body, '<h1>Files</h1>\n')
  t.is(answer('GET /docs/').body, '<h1>Docs</h1>\n')
  t.is(answer('GET /docs').body, '<h1>Docs</h1>\n')
  t.is(answer('GET /empty/').status, 404)
  t.is(answer('GET /%252e%252e').body, 'a name that looks like an escape\n', 'decoded once')
  t.is(answer('HEAD /letters.txt').body, '')
  t.is(answer('HEAD /letters.txt').head, answer('GET /letters.txt').head)
  t.is(answer('HEAD /letters.txt | Range: bytes=2-5').status, 200)

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

  const [, tag] = /** @type {string[]} */ (/^ETag: (.*)\r$/m.exec(answer('GET /letters.txt').head))
  const date = 'Wed, 31 Mar 2010 12:00:00 GMT'
  t.regex(answer('GET /letters.txt').head, new RegExp(`^Last-Modified: ${date}\\r$`, 'm'))
  t.deepEqual(letters(`If-None-Match: "other", W/${tag}`), [304, '', undefined])
  t.is(letters('If-None-Match: *')[0], 304)
  const both = letters(`If-None-Match: "other" | If-Modified-Since: ${date}`)
  t.deepEqual(both, whole, 'the tag counts, not the date')
  t.is(letters(`If-Modified-Since: ${date}`)[0], 304)
  t.deepEqual(letters('If-Modified-Since: Tue, 30 Mar 2010 12:00:00 GMT'), whole)
  t.deepEqual(letters('If-Modified-Since: whenever'), whole)
  t.is(letters(`Range: bytes=2-5 | If-Range: ${tag}`)[0], 206)
  t.is(letters(`Range: bytes=2-5 | If-Range: ${date}`)[0], 206)
  t.deepEqual(letters('Range: bytes=2-5 | If-Range: "other"'), whole)
  t.deepEqual(letters(`Range: bytes=2-5 | If-Range: W/${tag}`), whole, 'a weak tag is no proof')

  const served = spans.filter(({ kind }) => kind === 'SERVER')
  const codes = served.map(({ attributes }) => attributes['http.response.status_code'])
  t.deepEqual(codes, [...exchanges.values()].map(({ status }) => status))
})

const deferrals = ['process.nextTick', 'queueMicrotask', 'promise.then', 'setImmediate', 'setTimeout 0']

/** The ways in the order in which they run, by where they were set. @type {Record<string, string>} */
const orders = {
  'the main script': 'tick then microtask timeout immediate',
  'an ES module, at its top': 'then microtask tick',
  'a callback of fs.stat': 'tick then microtask immediate timeout',
  'a callback of process.nextTick': 'tick then microtask timeout immediate',
  'a promise, so after await': 'then microtask tick timeout immediate',
  'a callback of setImmediate': 'tick then microtask timeout immediate',
  'a callback of setTimeout': 'tick then microtask immediate timeout'
}
const names = {
  tick: 'process.nextTick',
  then: 'promise.then',
  microtask: 'queueMicrotask',
  timeout: 'setTimeout 0',
  immediate: 'setImmediate'
}

test.serial('05-deferring: delays, order, and which way starves the event loop', async (t) => {
  const answers = (await equalAnswers(t, '05-deferring')).answers.split('\n')
  for (const page of ['a page', 'an empty page', 'no page']) {
    t.true(answers.includes(`${page}, at once: the call is over`))
  }
  for (const way of [...deferrals, 'a call of fs.stat']) {
    t.true(answers.includes(`a page, ${way}: the call is over, before, after 5 characters`), way)
    t.true(answers.includes(`an empty page, ${way}: the call is over, error (an empty page)`), way)
    t.true(answers.includes(`no page, ${way}: the call is over, otherwise`), way)
  }
  for (const [place, order] of Object.entries(orders)) {
    const ways = order.split(' ').map((word) => names[word])
    t.true(answers.includes(`deferred in ${place}: ${ways.join(', ')}`), place)
  }
  for (const [index, way] of deferrals.entries()) {
    const time = index < 3 ? 'when it is over' : 'while it goes on'
    t.true(answers.includes(`${way} again and again: a read is back ${time}`), way)
  }
})

test.serial('06-logger: levels, several outputs, a failing output, rotation', async (t) => {
  const { answers, spans } = await equalAnswers(t, '06-logger')
  t.regex(answers, /^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\nhello\n/m)
  inOrder(t, answers, /^all\.1:\n.*debug a debug\\nof "two" lines \\u001b\[31m\n/,
    /still in the old file\n\nall:\n(?!.*still)/, /in the new file\n/)
  t.regex(answers, /info {2}request 2: \/\\nforged\n/, 'no line is forged')
  const warnings = /** @type {string} */ (/^warnings:\n([^]*?)\n\n/m.exec(answers)?.[1]).split('\n')
  t.true(warnings.every((line) => /Z (warn |error) /.test(line)))
  const failures = warnings.filter((line) => line.includes('failed with ENOSPC'))
  t.is(failures.length, 2, 'once, and once when it was tried again')
  t.true(spans.some(({ name }) => name === 'GET /user'))
})

test.serial('07-never-comes-back: the answers are the same however the work is done', async (t) => {
  const { answers } = await equalAnswers(t, '07-never-comes-back')
  const end = answers.indexOf('connected\n')
  const [first, ...others] = [0, 1, 2, 3].map((i) => answers.slice(end / 4 * i, end / 4 * (i + 1)))
  t.deepEqual(others, [first, first, first])
  t.deepEqual(first.match(/^HTTP\/1.1 200 OK\r$/mg)?.length, 3)
  for (const body of ['cheap', '6057 primes', 'busy']) t.true(first.includes(`\r\n\r\n${body}\n`))
  /** @param {string} route */
  const stuck = (route) => `connected\nsent GET ${route}\nno answer in 0.1 s: gives up\n`
  t.is(answers.slice(end), stuck('/forever') + stuck('/cheap'))
})
