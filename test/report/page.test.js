'use strict'

// The page as text: its embedded data, its thinning, and its content without scripts. page-browser.test.js
// tests it in a browser.

const { createHash } = require('node:crypto')
const test = require('ava')
const { fit } = require('../../report/render/page/data')
const { createPage } = require('../../report/render/page')
const { change, fromTo, percent, tick, time } = require('../../report/render/format')
const { escapeInvisible, pack, unpack } = require('../../report/render/page/client/pack')
const { dear, load, modelOf, span, stack } = require('../helpers/page')

const MB = 1_000_000

/** @param {string} html */
function embedded (html) {
  return unpack(/<script type="application\/json" id="data">(.*?)<\/script>/s.exec(html)?.[1] ?? '')
}

test('times have three digits and the unit that people expect', (t) => {
  t.deepEqual([0, 0.0004, 0.85, 0.9999, 1, 12.345, 999.9, 1234, 90_000, 182_000, 8e6, 1e9].map(time),
    ['0 µs', '0.40 µs', '850 µs', '1.00 ms', '1.00 ms', '12.3 ms', '1.00 s', '1.23 s', '90.0 s', '3.03 min', '2.22 h', '278 h'])
  t.is(time(-1.5), '-1.50 ms')
  t.deepEqual([undefined, NaN, Infinity, null, '3'].map(time), ['–', '–', '–', '–', '–'])
  t.deepEqual([0, 2, 0.5, 2500, 100].map(tick), ['0', '2 ms', '500 µs', '2.5 s', '100 ms'])
  t.is(fromTo(3.2, 4.1), '3.20 → 4.10 ms')
  t.is(fromTo(900, 1200), '900 ms → 1.20 s')
})

test('changes and shares are rounded', (t) => {
  t.deepEqual(
    [
      change(10, 12),
      change(10, 9.94),
      change(10, 2),
      change(1, 40),
      change(5, 5),
      change(0, 5),
      change(undefined, 1)
    ],
    ['+20 %', '−0.6 %', '−80 %', '× 40.0', '± 0 %', '–', '–']
  )
  t.deepEqual([0, 0.0002, 0.055, 0.5, NaN].map(percent), ['0 %', '<0.1 %', '5.5 %', '50 %', '–'])
})

test('characters that hide or reverse text are escaped', (t) => {
  t.is(escapeInvisible('user\u202etxt.exe\u2066 a\0b\x1b[31m\u200b'), 'user\\u202etxt.exe\\u2066 a\\u0000b\\u001b[31m\\u200b')
  t.is(escapeInvisible('line\r\nline\tß 漢 👍 العربية'), 'line\nline\tß 漢 👍 العربية')
})

test('all scripts and styles are allowed by hash, and nothing else', async (t) => {
  const html = createPage(await modelOf(load({ spans: 100 })))
  const policy = /http-equiv="Content-Security-Policy" content="([^"]+)"/.exec(html)?.[1] ?? ''
  t.regex(policy, /^default-src 'none'; script-src 'sha256-[^']+'; style-src 'sha256-[^']+'; img-src data:/)
  t.notRegex(policy, /unsafe|https?:|\*/)
  const parts = [...html.matchAll(/<(?:script|style)>(.*?)<\/(?:script|style)>/gs)].map(([, text]) => text)
  t.is(parts.length, 2)
  for (const text of parts) t.true(policy.includes(createHash('sha256').update(text).digest('base64')))
  t.notRegex(html.replace(/<script.*?<\/script>/gs, ''), /(?:src|href)="(?!data:|#)|@import|url\(/)
  t.notRegex(html, /sourceMappingURL/)
})

test('the title is escaped text', async (t) => {
  const html = createPage(await modelOf([]), { title: '</title><script>alert(1)</script>' })
  t.true(html.includes('<title>&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt;</title>'))
  t.is(html.match(/<script/g)?.length, 2)
})

test('embedded data cannot close their element', async (t) => {
  const name = 'GET </script><!--<script>alert(1)</script>-->'
  const html = createPage(await modelOf([span({ name, at: 0, ms: 1, attributes: { 'url.path': name, 'code.stacktrace': `    at ${name}` } })]))
  t.is(html.match(/<script/g)?.length, 2)
  t.is(html.match(/<!--/g), null)
  t.is(embedded(html).runs[0].routes[0].name, name)
  t.is(embedded(html).traces[0].spans[0].attributes['url.path'], name)
})

test('the page\'s data hold the model\'s exact figures', async (t) => {
  const model = await modelOf(load({ spans: 500 }))
  const { data } = fit(model, 'x')
  for (const [i, { name, count, errors, summary, box, split }] of model.routes.entries()) {
    t.like(data.runs[0].routes[i], { name, count, errors, summary, split })
    t.is(data.runs[0].routes[i].box?.median, box.median)
  }
  const read = unpack(pack(data))
  const isClose = (/** @type {number} */ a, /** @type {number} */ b) => Math.abs(a - b) <= 1e-6
  for (const [i, { summary }] of model.routes.entries()) {
    const packed = read.runs[0].routes[i].summary
    for (const [name, ms] of Object.entries(summary)) t.true(isClose(packed[name], ms), name)
  }
  t.deepEqual(data.traces.slice(0, 20).map(({ id }) => id), model.slowest.map(({ traceId }) => traceId))
  t.deepEqual(data.traces[0].spans.map(({ name }) => name), ['GET /report/:year', 'GET', 'blocked', 'read template', 'audit'])
  t.is(data.traces[0].spans[2].blocked, true)
  t.is(pack(data).split('at Report.render (').length, 2, 'each stack once')
  t.is(read.traces[0].spans[0].stack, stack)
})

test('a page with much data stays below 5 MB and lists what it omits', async (t) => {
  const long = `${'    at somewhere (/app/a/rather/long/path/file.js:1:1)\n'.repeat(140)}`
  const lines = Array.from({ length: 20 }, (_, i) => {
    const [root, ...rest] = dear(i, 500 - i).reverse()
    const more = Array.from({ length: 140 }, (_, n) => ({
      ...rest[0], spanId: (2 ** 48 + i * 1000 + n).toString(16).padStart(16, '0'), name: `step ${n}`, attributes: { 'code.stacktrace': `    at f${i}x${n} (a.js:1:1)\n${long}` }
    }))
    return [root, ...rest, ...more]
  }).flat()
  const routes = Array.from({ length: 2500 }, (_, i) => [1, 2, 3].map((ms) => span({ name: `GET /${'x'.repeat(200)}/${i}`, at: i, ms })))
  const model = await modelOf([...lines, ...routes.flat()])
  t.true(JSON.stringify(model).length > 20 * MB, 'that is worth thinning')
  const html = createPage(model)
  t.true(Buffer.byteLength(html) < 5 * MB, `${Buffer.byteLength(html)} bytes`)
  const { thinned, traces, runs } = embedded(html)
  t.true(thinned.some((/** @type {string} */ one) => /^Only the first [\d,]+ of 2,\d\d\d routes are shown\.$/.test(one)), thinned.join(' '))
  t.true(thinned.some((/** @type {string} */ one) => /^[\d,]+ stacks truncated to [\d,]+ characters\.$/.test(one)), thinned.join(' '))
  t.is(traces[0].name, 'GET /report/:year', 'the slowest one is still there')
  t.true(runs[0].routes.length >= 8)
})

test('the smallest frames of a large tree are merged, and all sums remain', async (t) => {
  /** @param {string} kind @param {number} ms @param {number} bucket */
  const leaf = (kind, ms, bucket) =>
    ({ name: kind, kind, ms, count: 1, children: [], byBucket: [bucket, ms] })
  const frames = Array.from({ length: 9000 }, (_, i) => ({ name: `f${i}`, kind: 'frame', ms: 3 + i, count: 2, children: [leaf('waited', 1 + i, i % 7), leaf('ran', 2, 3)] }))
  const ms = frames.reduce((sum, frame) => sum + frame.ms, 0)
  const series = { fromUnixMs: 0, stepMs: 1000, buckets: 10 }
  const route = { name: 'GET /', kind: 'route', ms, count: 1, children: frames }
  const whole = { ...route, name: 'all', kind: 'root', children: [route] }
  const { data, json } = fit({ ...await modelOf([]), series: { ...series, routes: [] }, tree: whole }, 'x')
  const { tree } = data.runs[0]
  const leaves = nodesOf(tree).filter(({ children }) => children === undefined)
  const added = (/** @type {number[]} */ list) => list.reduce((total, value) => total + value, 0)
  /** @param {string} kind */
  const sum = (kind) => added(leaves.filter((node) => node.kind === kind).map((node) => node.ms))
  t.true(nodesOf(tree).length <= 8000 && json.length < MB, `${nodesOf(tree).length} nodes`)
  t.is(sum('waited') + sum('ran'), ms)
  t.is(sum('ran'), 18_000)
  const merged = leaves.filter(({ name }) => name === '(smaller)')
  t.is(merged.length, 2)
  for (const leaf of merged) {
    const times = leaf.byBucket.filter((/** @type {number} */ _, /** @type {number} */ i) => i % 2 === 1)
    t.is(added(times), leaf.ms)
  }
  t.true(data.thinned.includes('The smallest frames of the flame graph are merged; the sums count all.'))
})

/** @param {any} node @returns {any[]} */
function nodesOf (node) {
  return [node, ...(node.children ?? []).flatMap(nodesOf)]
}

test('megabytes in one field are cut, and their length is printed', async (t) => {
  const name = 'n'.repeat(MB)
  const html = createPage(await modelOf([span({ name, at: 0, ms: 1, attributes: { 'http.request.header.x': 'h'.repeat(3 * MB), 'code.stacktrace': 's'.repeat(5 * MB) } })]))
  t.true(Buffer.byteLength(html) < MB)
  t.regex(html, /s{1000}… \(4,?99\d,?\d{3} more characters\)/)
})

test('data are unpacked unchanged', (t) => {
  const attributes = JSON.parse('{"__proto__": "#1", "#": "a text that is rather long", "length": 3}')
  const data = { texts: ['#', '#0', '', 'short', 'a text that is rather long', '<!--'], attributes, none: null, nanoseconds: 1.000001, unixMs: 1763685600000.125 }
  t.deepEqual(unpack(pack(data)), data)
  t.notRegex(pack(data), /</)
  t.is(pack(data).split('a text that is rather long').length, 2)
})

test('without scripts, the page has the report as text, with the same figures', async (t) => {
  const model = await modelOf(load({ spans: 500 }))
  const scriptless = (/** @type {any} */ one) => /<noscript>(.*?)<\/noscript>/s.exec(createPage(one))?.[1] ?? ''
  const html = scriptless(model)
  for (const { name } of model.routes) t.true(html.includes(name), name)
  const { name, summary } = model.routes[0]
  t.true(html.split(`${name}  `)[1].split('means')[0].includes(` ${summary.median.toFixed(3)} `), html)
  t.regex(html, /Blockers.*work \(\/app\/report\.js:31:9\)/s)
  t.regex(html, /POST \/orders/)
  const compared = await modelOf(load({ spans: 500 }), { compare: load({ spans: 500, faster: 0.2 }) })
  t.regex(scriptless(compared), /GET \/report\/:year.*−?-?[78]\d %/s)
})
