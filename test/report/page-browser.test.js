'use strict'

// The page in a real Chromium: it draws the figures, sorts, zooms, works with the keyboard, makes no
// requests, and shows hostile text as text.

/* global getComputedStyle */

const fs = require('node:fs')
const http = require('node:http')
const axe = require.resolve('axe-core')
const { able, dear, load, modelOf, open, span, stack } = require('../helpers/page')

/** @typedef {import('playwright-core').Page} Page */

/** Collects what the policy forbade, inside of the page. */
const witness = 'window.forbidden = []; addEventListener("securitypolicyviolation", (event) => window.forbidden.push(event.violatedDirective + " " + event.blockedURI))'

/** @param {Page} page */
const forbidden = (page) => page.evaluate(() => /** @type {any} */ (window).forbidden)

/** Names in the first column. @param {Page} page @param {string} section */
const firstColumn = (page, section) => page.locator(`#${section} tbody th .name`).allTextContents()

/** @param {Page} page @param {string} name */
const lane = (page, name) => page.locator('#routes tbody tr').filter({ has: page.getByText(name, { exact: true }) })

/** x of a box's parts in a lane @param {Page} page @param {string} name */
async function boxAt (page, name) {
  return lane(page, name).locator('.box').first().evaluate((box) => {
    const rect = /** @type {any} */ (box.querySelector('rect'))
    return { q1: rect.x.baseVal.value, q3: rect.x.baseVal.value + rect.width.baseVal.value, median: Number(box.querySelector('.median')?.getAttribute('x1')) }
  })
}

able('each route has a density and a box at its figures', async (t) => {
  const model = await modelOf(load({ spans: 1000 }))
  const { page, errors } = await open(model)
  t.is(await page.locator('#routes tbody tr').count(), model.routes.length)
  t.is(await page.locator('#routes tbody .hill').count(), model.routes.length)
  t.is(await page.locator('#routes tbody .box rect').count(), model.routes.length)
  const [a, b] = [model.routes[0], model.routes[3]]
  const [one, two, three] = await Promise.all([a, model.routes[1], b].map(async ({ box, name }) => {
    const { median, q1, q3 } = await boxAt(page, name)
    return { ms: Math.log(box.median), median, q1, q3, box }
  }))
  const perLog = (three.median - one.median) / (three.ms - one.ms)
  t.true(Math.abs((two.median - one.median) / (two.ms - one.ms) / perLog - 1) < 0.01, 'one logarithmic axis for all')
  const at = (/** @type {number} */ ms) => one.median + (Math.log(ms) - one.ms) * perLog
  t.true(Math.abs(three.q1 - at(b.box.q1)) < 0.01 && Math.abs(three.q3 - at(b.box.q3)) < 0.01)
  const peak = await lane(page, b.name).locator('.ridge').evaluate((path) => {
    const all = [...(path.getAttribute('d') ?? '').matchAll(/(-?[\d.]+),(-?[\d.]+)(?=[A-Z]|$)/g)].map(([, x, y]) => [Number(x), Number(y)])
    return all.sort((one, other) => one[1] - other[1])[0][0]
  })
  const most = b.logDensity.x[b.logDensity.y.indexOf(Math.max(...b.logDensity.y))]
  t.true(Math.abs(peak - at(most)) < at(b.logDensity.x[2]) - at(b.logDensity.x[0]), 'the hill is highest where the density is')
  t.deepEqual(errors, [])
})

able('a drawing has a description in words', async (t) => {
  const model = await modelOf(load({ spans: 300 }))
  const { page } = await open(model)
  const label = await lane(page, 'GET /users/:id').locator('svg[role=img]').getAttribute('aria-label')
  t.regex(label ?? '', /^Durations of GET \/users\/:id\. Min \d.*, 1st Qu\. .*, Median .*, Mean .*, 3rd Qu\. .*, p99 .*, Max /)
})

able('the page makes no requests, and could not', async (t) => {
  const { page, url, requests, errors } = await open(await modelOf(load({ spans: 300 })), { init: witness })
  await page.getByRole('button', { name: 'Zoom in: timeline' }).click()
  await page.locator('#slowest button.link').first().click()
  t.deepEqual(await forbidden(page), [])
  t.deepEqual([requests, errors], [[url], []])
  /** @type {string[]} */
  const arrived = []
  const server = http.createServer((request, response) => { arrived.push(String(request.url)); response.end() }).listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  const tried = await page.evaluate(async (there) => {
    const asked = await Promise.all([there, 'data:text/plain,x'].map((one) => fetch(one).then(() => 'answered', () => 'refused')))
    const script = document.createElement('script')
    try { script.textContent = 'window.ran = true' } catch { asked.push('no script') }
    document.body.append(script)
    document.body.append(Object.assign(document.createElement('img'), { src: `${there}x.png` }))
    try { document.body.insertAdjacentHTML('beforeend', '<b id="made">x</b>') } catch { asked.push('no markup') }
    return { asked, ran: /** @type {any} */ (window).ran, made: document.getElementById('made') }
  }, `http://127.0.0.1:${port}/`)
  t.deepEqual(tried, { asked: ['refused', 'refused', 'no script', 'no markup'], ran: undefined, made: null })
  await page.waitForFunction(() => /** @type {any} */ (window).forbidden.length >= 3)
  t.deepEqual(arrived, [])
})

able('any column sorts by click or key, and says so', async (t) => {
  const model = await modelOf(load({ spans: 300 }))
  const { page } = await open(model)
  const by = (/** @type {(route: any) => number} */ value) =>
    [...model.routes].sort((a, b) => value(b) - value(a)).map(({ name }) => name)
  const head = page.locator('#routes th', { hasText: 'Median' })
  t.is(await page.locator('#routes th[aria-sort]').innerText(), 'Count')
  await head.getByRole('button').click()
  t.deepEqual(await firstColumn(page, 'routes'), by(({ summary }) => summary.median))
  t.is(await head.getAttribute('aria-sort'), 'descending')
  t.is(await page.locator('#routes th[aria-sort]').count(), 1)
  await head.getByRole('button').press('Enter')
  t.deepEqual(await firstColumn(page, 'routes'), by(({ summary }) => -summary.median))
  t.is(await head.getAttribute('aria-sort'), 'ascending')
  t.is(await page.locator('#routes [aria-live]').innerText(), 'Sorted by Median, ascending')
  await page.locator('#routes th', { hasText: 'Route' }).getByRole('button').press('Space')
  const names = model.routes.map((/** @type {any} */ { name }) => name)
  t.deepEqual(await firstColumn(page, 'routes'), names.sort((/** @type {string} */ a, /** @type {string} */ b) => a.localeCompare(b)))
})

able('a long table shows its first rows, and all on request', async (t) => {
  const lines = Array.from({ length: 90 }, (_, i) => [1, 2, 3].map((ms) => span({ name: `GET /${i}`, at: i, ms: ms + i })))
  const { page } = await open(await modelOf(lines.flat()))
  t.is(await page.locator('#routes tbody tr').count(), 15)
  await page.getByRole('button', { name: 'Show all 90' }).click()
  t.is(await page.locator('#routes tbody tr').count(), 90)
})

able('a request\'s timeline zooms by buttons, keys, wheel and drag; the wheel alone scrolls', async (t) => {
  const { page } = await open(await modelOf(load({ spans: 300 })))
  const bar = page.locator('.spans .bar').first()
  const box = () => bar.evaluate((/** @type {any} */ rect) =>
    ({ x: rect.x.baseVal.value, width: rect.width.baseVal.value }))
  const button = (/** @type {string} */ name) => page.getByRole('button', { name: `${name}: timeline` })
  const whole = (await box()).width
  t.true(await button('Reset zoom').isDisabled())
  await button('Zoom in').click()
  t.true(Math.abs((await box()).width / whole - 1.6) < 0.01)
  t.regex(await page.locator('#request .told').innerText(), /^\S+ (µs|ms) to \S+ (ms|s)$/)
  await button('Zoom in').press('+')
  t.true(Math.abs((await box()).width / whole - 2.56) < 0.02)
  const before = (await box()).x
  await button('Zoom in').press('ArrowLeft')
  t.true((await box()).x > before, 'moved')
  await button('Zoom in').press('0')
  t.is((await box()).width, whole)
  t.is(await page.locator('#request .told').innerText(), '')

  const svg = page.locator('.spans svg.plot').first()
  await svg.scrollIntoViewIfNeeded()
  const plot = await svg.boundingBox()
  await page.mouse.move(Number(plot?.x) + 300, Number(plot?.y) + 10)
  await page.keyboard.down('Control')
  await page.mouse.wheel(0, -300)
  await page.keyboard.up('Control')
  const zoomed = await box()
  t.true(zoomed.width > whole * 1.2)
  await page.mouse.down()
  await page.mouse.move(Number(plot?.x) + 260, Number(plot?.y) + 10, { steps: 4 })
  await page.mouse.up()
  t.true(Math.abs((await box()).x - zoomed.x + 40) < 1, 'dragged along')
  const y = await page.evaluate(() => window.scrollY)
  await page.mouse.wheel(0, -400)
  await page.waitForFunction((start) => window.scrollY < start, y)
  t.true(Math.abs((await box()).width - zoomed.width) < 0.01)
})

able('a slow request opens step by step: tree, runs, stacks, delays', async (t) => {
  const model = await modelOf(load({ spans: 300 }))
  const { page } = await open(model)
  await page.locator('#slowest tbody tr').nth(2).getByRole('button').click()
  const { ms, traceId } = model.slowest[2]
  t.regex(await page.locator('#request select').evaluate((select) => /** @type {any} */ (select).selectedOptions[0].text), /^3\. GET \/report\/:year · /)
  t.deepEqual(await page.locator('.spans tbody bdi').allTextContents(), ['GET /report/:year', 'GET', 'blocked', 'read template', 'audit'])
  t.deepEqual(await page.locator('.spans tbody tr').evaluateAll((rows) => rows.map((row) => /** @type {any} */ (row).style.getPropertyValue('--depth'))), ['0', '1', '1', '1', '2'])
  const detail = page.locator('#detail')
  t.true((await detail.innerText()).includes(traceId))
  t.is(await detail.locator('.stack').first().evaluate((pre) => pre.textContent), `${stack}\n`)
  t.is(await detail.locator('.stack .hop').count(), 2)
  t.regex(await detail.innerText(), /POST \/orders in hash \(\/app\/orders\.js:8:3\)/)
  t.regex(await detail.innerText(), /code outside any span/)
  t.regex(await detail.innerText(), /Where it waited\n.* ms in 2 waits at load \(\/app\/lib\/db\.js:34:9\) until TCP 127\.0\.0\.1:5432\n/)
  const waits = await page.locator('#slowest tbody tr').first().locator('.wait').allTextContents()
  t.regex(waits[0], /^load \(db\.js:34\) · \S+ ms in 2 waits · until TCP 127\.0\.0\.1:5432$/)
  t.regex(waits[1], /^read \(files\.js:8\) · \S+ ms · until FS$/)

  const row = page.locator('.spans tbody tr').first()
  const [bar, run] = await Promise.all(['.bar', '.ran >> nth=1'].map((what) => row.locator(what).boundingBox()))
  t.true(Math.abs(Number(run?.width) / Number(bar?.width) - 0.5) < 0.01, 'half of its time was one run')
  t.true(Math.abs((Number(run?.x) - Number(bar?.x)) / Number(bar?.width) - 0.3) < 0.01)
  t.true(ms > 0)

  await row.getByRole('button').focus()
  for (let i = 0; i < 3; i++) await page.keyboard.press('ArrowDown')
  t.is(await detail.locator('h3').innerText(), 'read template')
  t.is(await page.locator('.spans [aria-pressed=true]').innerText(), 'errorread template')
  t.regex(await detail.innerText(), /Status\s+error · ENOENT: no such file/)
  await detail.locator('.event summary').click()
  t.true(await detail.locator('.event .stack').isVisible())
  await page.getByRole('button', { name: 'Zoom in: timeline' }).click()
  const wider = await row.locator('.bar').evaluate((one) => /** @type {any} */ (one).width.baseVal.value)
  t.true(Math.abs(wider / Number(bar?.width) - 1.6) < 0.01)
})

able('a request has a row per query in chronological order, with its wait before', async (t) => {
  const attributes = {
    'longstack.runs': [[0, 1, 'HTTPINCOMINGMESSAGE'], [9, 1, 'TCPWRAP'], [28, 1, 'TCPWRAP']],
    'longstack.waits': [{ ms: 8, count: 1, at: 'load (/app/users.js:12:9)', until: 'TCP 127.0.0.1:5432' }],
    'longstack.asked': [
      { start: 10, ms: 18, unsent: 4, at: 'save (/app/users.js:20:3) via pg', peer: '127.0.0.1:5432', operation: 'UPDATE users' },
      { start: 1, ms: 8, at: 'load (/app/users.js:12:9) via pg', peer: '127.0.0.1:5432' },
      { start: 29, ms: 1, unanswered: true, peer: '127.0.0.1:6379' }
    ]
  }
  const { page, errors } = await open(await modelOf([span({ name: 'GET /', at: 0, ms: 30, attributes })]))
  const rows = page.locator('.spans tbody tr')
  t.deepEqual(await rows.locator('button').allInnerTexts(), [
    'GET /', 'load (users.js:12) until TCP 127.0.0.1:5432', '127.0.0.1:5432 at load (users.js:12)',
    'UPDATE users on 127.0.0.1:5432 at save (users.js:20)', '127.0.0.1:6379'
  ])
  t.deepEqual((await rows.locator('td.number').allInnerTexts()).slice(2), ['8.00 ms', '18.0 ms', '1.00 ms'])
  const labels = await rows.locator('svg').evaluateAll((plots) => plots.map((plot) => plot.getAttribute('aria-label')))
  t.is(labels[3], 'asked 127.0.0.1:5432 at save (/app/users.js:20:3) via pg from 10.0 ms to 28.0 ms, after 4.00 ms in the driver')
  t.is(labels[4], 'asked 127.0.0.1:6379 from 29.0 ms to no answer')
  const [whole, asked] = await Promise.all([0, 3].map((i) => rows.nth(i).locator('rect.bar').boundingBox()))
  t.true(Math.abs(Number(asked?.width) / Number(whole?.width) - 0.6) < 0.02, 'its bar has its length')
  t.true(Math.abs((Number(asked?.x) - Number(whole?.x)) / Number(whole?.width) - 1 / 3) < 0.02, 'where it was')
  await rows.nth(0).getByRole('button').focus()
  for (let i = 0; i < 3; i++) await page.keyboard.press('ArrowDown')
  t.is(await page.locator('.spans [aria-pressed=true]').innerText(), 'UPDATE users on 127.0.0.1:5432 at save (users.js:20)')
  t.deepEqual(errors, [])
})

/**
 * A request that waits for its turn in a lock.
 * @param {string} name
 * @param {number} begin
 * @param {number} turn
 */
function queued (name, begin, turn, settler = '') {
  const wait = { ms: turn - begin - 1, count: 1, at: 'acquire (/app/lock.js:5:9)', callers: [`${name.slice(5)} (/app/app.js:3:9)`], until: `${settler} of another request` }
  return span({
    name,
    at: begin,
    ms: turn + 5 - begin,
    attributes: {
      'longstack.run_ms': 6,
      'longstack.delayed_ms': 0,
      'longstack.waited_ms': wait.ms,
      'longstack.waits': settler === '' ? [] : [wait],
      'longstack.runs': [[0, 1, 'HTTPINCOMINGMESSAGE'], [turn - begin, 5, 'Timeout', ...(settler === '' ? [] : [1])]]
    }
  })
}

able('each pair of waiting requests is listed, and how many wait at once; or nothing', async (t) => {
  const model = await modelOf([
    queued('GET /slow', 0, 80), queued('GET /a', 2, 86, 'GET /slow'), queued('GET /a', 4, 93, 'GET /a'), queued('GET /b', 6, 100, 'GET /a'),
    queued('GET /quick', 200, 201)
  ])
  const { page, errors } = await open(model)
  const part = page.locator('#waited-for')
  t.is(await part.locator('li').innerText(), '3 requests (2 × GET /a, GET /b) waited at once at acquire (lock.js:5), the longest for 93 ms, the first of them for GET /slow')
  const cells = async () => (await part.locator('tbody tr').allInnerTexts()).map((row) => row.split('\t').slice(1, 4).map((cell) => cell.trim().split('\n')[0]))
  t.deepEqual(await cells(), [
    ['GET /b', '93.0 ms', 'GET /a'], ['GET /a', '88.0 ms', 'GET /a'], ['GET /a', '83.0 ms', 'GET /slow']
  ])
  t.regex(await part.locator('tbody th').first().innerText(), /^acquire \(lock\.js:5\) ← b \(app\.js:3\)/)
  await part.getByRole('button', { name: 'Waited for' }).press('Enter')
  t.is(await part.locator('th[aria-sort]').innerText(), 'Waited for')
  await page.getByLabel('Route or trace').fill('/b')
  t.deepEqual(await cells(), [['GET /b', '93.0 ms', 'GET /a']])
  const alone = await open(await modelOf(load({ spans: 100 })))
  t.is(await alone.page.locator('#waited-for').count(), 0)
  t.deepEqual([errors, alone.errors], [[], []])
})

able('open requests are shown as open', async (t) => {
  const { page } = await open(await modelOf([...dear(0, 300), span({ name: 'POST /orders', at: 0, ms: 61_200, attributes: { 'longstack.end': 'open' } })]))
  await page.locator('.spans').getByRole('button', { name: 'audit' }).click()
  t.is(await page.locator('.spans .chosen').getByText('open').count(), 1)
  t.regex(await page.locator('#detail').innerText(), /Ended\s+still open when written/)
  t.deepEqual((await page.locator('#open tbody tr').first().innerText()).split(/\s*\t\s*/).slice(0, 2), ['POST /orders', '61.2 s'])
})

able('spans that are their own ancestors, or have none, are all shown', async (t) => {
  const traceId = 'a'.repeat(32)
  const id = (/** @type {number} */ n) => `${n}`.repeat(16)
  const { page, errors } = await open(await modelOf([
    span({ traceId, spanId: id(1), name: 'GET /', at: 0, ms: 9 }),
    span({ traceId, spanId: id(2), parentSpanId: id(3), name: 'egg', at: 1, ms: 2, kind: 'INTERNAL' }),
    span({ traceId, spanId: id(3), parentSpanId: id(2), name: 'hen', at: 2, ms: 2, kind: 'INTERNAL' }),
    span({ traceId, spanId: id(4), parentSpanId: id(4), name: 'self', at: 3, ms: 2, kind: 'INTERNAL' }),
    span({ traceId, spanId: id(5), parentSpanId: id(9), name: 'lost', at: 4, ms: 2, kind: 'INTERNAL' })
  ]))
  t.deepEqual((await page.locator('.spans tbody bdi').allTextContents()).sort(), ['GET /', 'egg', 'hen', 'lost', 'self'])
  t.deepEqual(errors, [])
})

able('two runs are compared: both densities in a row, the change of each quartile', async (t) => {
  const model = await modelOf(load({ spans: 500 }), { compare: load({ spans: 500, faster: 0.2 }) })
  const { page, errors } = await open(model)
  t.is(await lane(page, 'GET /report/:year').locator('.hill').count(), 2)
  t.is(await lane(page, 'GET /report/:year').locator('.box rect').count(), 2)
  const row = lane(page, 'GET /report/:year')
  const changes = await row.locator('.change').allTextContents()
  t.is(changes.length, 7)
  t.true(changes.slice(1, 5).every((one) => /^−[78]\d %$/.test(one)), changes.join(' '))
  t.is(await page.locator('#routes table').count(), 1)
  t.is(await page.locator('#blockers table').count(), 2)
  await page.locator('#routes th', { hasText: 'Median' }).getByRole('button').click()
  t.is(await page.locator('#routes th[aria-sort=descending]').innerText(), 'Median')
  t.deepEqual(errors, [])
})

const nasty = '<img src=x onerror="window.hit=1"></script><script>window.hit=2</script><!-- --><svg onload=window.hit=3> javascript:alert(1) {{1}} &lt;b&gt;'

able('markup in a name, a path, a header, a stack or a file is shown as text', async (t) => {
  const attributes = {
    'url.path': nasty,
    [`http.request.header.${nasty}`]: [nasty],
    'code.stacktrace': `    at ${nasty} (/app/x.js:1:1)`,
    'longstack.end': nasty.slice(0, 30),
    'longstack.run_ms': 1,
    'longstack.waited_ms': 0,
    'longstack.delayed_ms': 1,
    'longstack.waits': [{ ms: 1, count: 1, at: nasty, until: nasty }],
    'longstack.delayed_by': [{ name: nasty, ms: 1, at: nasty }],
    'longstack.runs': [[0, 1, nasty]]
  }
  const events = [{ name: nasty, timeUnixNano: '1763685600000500000', attributes: { 'exception.message': nasty, 'exception.stacktrace': nasty } }]
  const lines = [1, 2].map((ms) => span({ name: nasty, at: 0, ms, attributes, events, status: { code: 'ERROR', message: nasty }, resource: { 'service.name': nasty } }))
  const model = await modelOf(lines, { name: 'a<script>alert(1)<!--.jsonl' })
  const { page, url, requests, errors } = await open(model, { title: nasty, init: witness })
  t.is(await page.title(), nasty)
  t.is(await page.locator('h1').innerText(), nasty)
  t.deepEqual(await firstColumn(page, 'routes'), [nasty])
  t.is(await page.locator('#detail h3').innerText(), nasty)
  t.true((await page.locator('#detail > .stack').innerText()).includes(nasty))
  t.true(await page.locator('#detail .facts').last().innerText().then((text) => text.includes(nasty)))
  t.true((await page.locator('#slowest .wait').first().innerText()).includes(nasty))
  t.true((await page.locator('#routes svg title').first().evaluate((title) => title.textContent))?.includes(nasty))
  t.deepEqual(await page.evaluate(() => [(window).hit, document.querySelectorAll('#page script, #page img, [onload], [onerror]').length]), [undefined, 0])
  t.deepEqual([requests, errors, await forbidden(page)], [[url], [], []])
})

able('characters that reverse the direction of text are escaped', async (t) => {
  const name = 'GET /\u202egnp.exe\u2066\u200b\x7f'
  const { page } = await open(await modelOf([1, 2].map((ms) => span({ name, at: 0, ms, attributes: { 'code.stacktrace': `    at ${name}` } }))))
  t.deepEqual(await firstColumn(page, 'routes'), ['GET /\\u202egnp.exe\\u2066\\u200b\\u007f'])
  t.notRegex(await page.locator('body').innerText(), /[\u202a-\u202e\u2066-\u2069\u200b\x7f]/)
})

able('megabytes of text break neither the layout nor the page', async (t) => {
  const word = 'm'.repeat(2_000_000)
  const attributes = { 'url.path': word, 'code.stacktrace': `    at ${word}\n`.repeat(2) }
  const { page, errors } = await open(
    await modelOf([1, 2].map((ms) => span({ name: word, at: 0, ms, attributes })))
  )
  t.true(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth))
  t.regex(await page.locator('#detail .facts').last().innerText(), /m{100}… \(1,?999,?\d{3} (more characters|characters more)\)/)
  t.deepEqual(errors, [])
})

able('an empty report says so', async (t) => {
  const { page, errors } = await open(await modelOf([]))
  t.regex(await page.locator('main').innerText(), /No finished spans to draw/)
  t.deepEqual(errors, [])
})

able('light and dark follow the system, and the switch', async (t) => {
  const { page } = await open(await modelOf(load({ spans: 100 })), { colorScheme: 'dark' })
  const paper = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor)
  const dark = await paper()
  t.not(dark, 'rgb(255, 255, 255)')
  await page.getByText('Light', { exact: true }).click()
  t.is(await paper(), 'rgb(255, 255, 255)')
  await page.emulateMedia({ colorScheme: 'light' })
  await page.getByText('Dark', { exact: true }).click()
  t.is(await paper(), dark)
  await page.getByRole('radio', { name: 'Auto' }).check({ force: true })
  t.is(await paper(), 'rgb(255, 255, 255)')
})

able('the keyboard reaches everything in page order, with a visible focus', async (t) => {
  const { page } = await open(await modelOf(load({ spans: 300 })))
  /** @type {string[]} */
  const reached = []
  for (let i = 0; i < 240; i++) {
    await page.keyboard.press('Tab')
    const one = await page.evaluate(() => {
      const element = /** @type {any} */ (document.activeElement)
      const drawn = element.matches('input[type=radio]') ? element.nextSibling : element
      const { outlineStyle, outlineWidth } = getComputedStyle(drawn)
      return { name: element.ariaLabel ?? element.textContent ?? '', tag: element.tagName, visible: outlineStyle !== 'none' && outlineWidth !== '0px' }
    })
    if (one.tag === 'BODY') break
    t.true(one.visible, `${one.tag} ${one.name}`)
    reached.push(one.name)
  }
  t.is(reached[0], 'Skip to the report')
  const order = ['Begin of the selected range', 'Rate', 'GET /report/:year', 'Critical paths', 'Stack', 'Show all 20', 'Zoom in: timeline', 'Attributes']
  const places = order.map((name) => reached.lastIndexOf(name) === -1 ? name : reached.indexOf(name))
  t.deepEqual(places, [...places].sort((a, b) => Number(a) - Number(b)))
})

for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
  able(`axe finds no violation, ${colorScheme}`, async (t) => {
    const model = await modelOf(load({ spans: 500 }), { compare: load({ spans: 500, faster: 0.2 }) })
    for (const viewport of [{ width: 1280, height: 900 }, { width: 390, height: 800 }]) {
      const { page } = await open(model, { colorScheme, viewport, init: fs.readFileSync(axe, 'utf8') })
      await page.getByRole('button', { name: 'Zoom in: timeline' }).click()
      const { violations } = await page.evaluate(() => /** @type {any} */ (window).axe.run())
      t.deepEqual(
        violations.map((/** @type {any} */ { id, impact, nodes }) => [
          id,
          impact,
          nodes.length,
          nodes[0].html.slice(0, 200),
          nodes[0].failureSummary
        ]),
        []
      )
    }
  })
}

able('the page fits a narrow screen', async (t) => {
  const { page } = await open(await modelOf(load({ spans: 300 })), { viewport: { width: 360, height: 740 } })
  t.true(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth))
  const title = await page.locator('.timeline .lane-title').first().boundingBox()
  const plot = await page.locator('.timeline .lane-plot').first().boundingBox()
  t.true(Number(plot?.y) >= Number(title?.y) + Number(title?.height), 'the name stands above its drawing')
  t.true(Number(plot?.width) > 300)
})

able('without JavaScript the page has the figures', async (t) => {
  const { page } = await open(await modelOf(load({ spans: 300 })), { javaScriptEnabled: false })
  t.true(await page.getByRole('heading', { name: 'longstack report' }).isVisible())
  t.regex(await page.locator('pre').innerText(), /GET \/users\/:id .*spans/)
})

able('the page fits a sheet of paper', async (t) => {
  const { page } = await open(await modelOf(load({ spans: 300 })))
  await page.setViewportSize({ width: 794, height: 1123 })
  await page.emulateMedia({ media: 'print', colorScheme: 'dark' })
  t.true(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth))
  t.is(await page.evaluate(() => getComputedStyle(document.body).color), 'rgb(0, 0, 0)')
})

able('a route has the time that its requests lay unread', async (t) => {
  const attributes = { 'longstack.run_ms': 2, 'longstack.waited_ms': 0, 'longstack.delayed_ms': 0 }
  const model = await modelOf([0, 100].flatMap((at) => [
    span({ name: 'GET /health', at, ms: 2, attributes: { ...attributes, 'longstack.queued_ms': 79 } }),
    span({ name: 'GET /item', at, ms: 2, attributes: { ...attributes, 'longstack.queued_ms': 0.1 } })
  ]))
  const { page } = await open(model)
  t.deepEqual(await lane(page, 'GET /health').locator('.unread').allTextContents(), ['+ 79.0 ms unread'])
  t.is(await lane(page, 'GET /item').locator('.unread').count(), 0)
})
