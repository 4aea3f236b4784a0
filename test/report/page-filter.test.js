'use strict'

// The page's verdict, time axis, filters, waits and failures in a real Chromium, on a file with known
// figures: a minute with a 100 ms request each second and a 10 ms one every other second; five of those fail.

const fs = require('node:fs')
const axe = require.resolve('axe-core')
const { able, modelOf, open, span, stack } = require('../helpers/page')

/* global getComputedStyle */

/** @typedef {import('playwright-core').Page} Page */

const query = 'query (/app/lib/pool.js:34:9)'
const report = 'report (/app/routes/report.js:24:9)'
const slow = {
  'longstack.run_ms': 30,
  'longstack.waited_ms': 70,
  'longstack.delayed_ms': 0,
  'longstack.waits': [
    { ms: 60, count: 2, at: query, callers: [report], until: 'TCP 127.0.0.1:5432', label: 'await' },
    { ms: 10, count: 1, at: report, callers: [], until: 'TIMER', label: 'setTimeout(10)' }
  ],
  'longstack.ran': [{ ms: 20, count: 1, at: query, callers: [report], label: 'await' }, { ms: 10, count: 1, callers: [], label: 'http' }],
  'longstack.runs': [[0, 10, 'HTTPINCOMINGMESSAGE'], [20, 20, 'TCPWRAP']]
}
const quick = { 'longstack.run_ms': 10, 'longstack.waited_ms': 0, 'longstack.delayed_ms': 0, 'longstack.ran': [{ ms: 10, count: 1, callers: [], label: 'http' }] }
const blocked = { 'longstack.blocked_ms': 50, 'longstack.blocked_by': 'GET /slow', 'code.stacktrace': stack }
const error = { name: 'exception', timeUnixNano: '1763685600000000000', attributes: { 'exception.type': 'TypeError', 'exception.message': 'no user', 'exception.stacktrace': `TypeError: no user\n${stack}` } }

function * minute () {
  for (let second = 0; second < 60; second++) {
    yield span({ name: 'GET /slow', at: second * 1000 + 1, ms: 100, attributes: slow })
    if (second % 15 === 0) yield span({ name: 'blocked', kind: 'INTERNAL', at: second * 1000 + 20, ms: 50, attributes: blocked })
    if (second % 2 !== 0) continue
    const failure = { status: { code: 'ERROR', message: 'no user' }, events: [error] }
    const isFailed = second >= 10 && second < 20
    const outcome = isFailed ? failure : {}
    yield span({ name: 'GET /quick', at: second * 1000 + 1, ms: 10, attributes: quick, ...outcome })
  }
}

const verdict = [
  { rule: 'pool', route: 'GET /slow', at: query, lostMs: 3600, share: 0.6, sentence: 'GET /slow waits for a free connection.', advice: 'Enlarge the pool.', figures: {} }
]

/** @param {any} [options] */
async function opened (options) {
  const model = await modelOf(minute())
  return { model, ...await open(Object.assign(model, { verdict }), options) }
}

/** @param {Page} page */
async function tiles (page) {
  const entries = await page.locator('.tiles > div').evaluateAll((all) => all.map((tile) => [tile.querySelector('dt')?.textContent, tile.querySelector('dd')?.firstChild?.textContent]))
  return Object.fromEntries(entries)
}

/**
 * Returns the first lines of a row's cells.
 * @param {Page} page
 * @param {string} section
 * @param {string} name in the row
 */
async function cells (page, section, name) {
  const row = page.locator(`#${section} tbody tr`).filter({ hasText: name }).first()
  return (await row.locator('th, td').allInnerTexts()).map((text) => text.split('\n')[0])
}

/** @param {Page} page @param {'Begin' | 'End'} name */
const slider = (page, name) => page.getByRole('slider', { name: `${name} of the selected range` })

/** @param {Page} page @param {string} key @param {number} times */
async function press (page, key, times) {
  for (let i = 0; i < times; i++) await page.keyboard.press(key)
}

/** Selects 10 to 20 s with the keys. @param {Page} page @param {any} series */
async function selectRange (page, { stepMs, buckets }) {
  const leap = Math.round(buckets / 10)
  const [begin, end] = [10_000 / stepMs, buckets - 20_000 / stepMs]
  await slider(page, 'Begin').focus()
  await press(page, 'PageUp', Math.floor(begin / leap))
  await press(page, 'ArrowRight', begin % leap)
  await slider(page, 'End').focus()
  await press(page, 'PageDown', Math.floor(end / leap))
  await press(page, 'ArrowLeft', end % leap)
}

able('a range chosen by keys has the exact figures of its requests', async (t) => {
  const { page, model, errors } = await opened()
  t.like(await tiles(page), { Spans: '90', Errors: '5', Slowest: '100 ms' })
  await selectRange(page, model.series)
  t.regex(await page.locator('.filters [role=status]').innerText(), /^00:40:10 to 00:40:20 UTC \(10\.0 s\): 15 requests$/)
  t.like(await tiles(page), { Requests: '15', Errors: '5', Rate: '1.50/s' })
  t.deepEqual((await cells(page, 'routes', 'GET /slow')).filter((_, i) => i !== 1).slice(0, 5), ['GET /slow', '30 % · 70 % · 0 %', '10', '1.00/s', '0'])
  t.deepEqual((await cells(page, 'routes', 'GET /quick')).filter((_, i) => i > 2).slice(0, 3), ['5', '0.50/s', '5'])
  t.is((await cells(page, 'routes', 'GET /slow'))[9], '100 ms', 'the mean')
  t.is(await page.locator('.filter-line [role=status]').innerText(), 'Only 00:40:10 to 00:40:20.')
  const starts = await page.locator('#slowest td.clock').allInnerTexts()
  t.true(starts.every((start) => start >= '00:40:10' && start < '00:40:20'), starts.join(' '))
  await slider(page, 'End').press('Escape')
  t.like(await tiles(page), { Spans: '90' })
  t.deepEqual(errors, [])
})

able('a brush by mouse selects whole buckets, a click selects all', async (t) => {
  const { page, model } = await opened()
  const { stepMs, buckets } = model.series
  const box = await page.locator('.timeline .brush').boundingBox()
  const x = (/** @type {number} */ ms) => Number(box?.x) + Number(box?.width) * ms / (stepMs * buckets)
  await page.mouse.move(x(10_000) + 2, Number(box?.y) + 30)
  await page.mouse.down()
  await page.mouse.move(x(20_000) - 2, Number(box?.y) + 60, { steps: 5 })
  await page.mouse.up()
  t.like(await tiles(page), { Requests: '15', Errors: '5' })
  t.is(await slider(page, 'Begin').getAttribute('aria-valuetext'), '00:40:10')
  const selection = await page.locator('.brush .selection').boundingBox()
  t.true(Math.abs(Number(selection?.x) - x(10_000)) < 1)
  t.true(Math.abs(Number(selection?.width) - (x(20_000) - x(10_000))) < 1)
  await page.getByRole('button', { name: 'Whole run' }).click()
  t.like(await tiles(page), { Spans: '90' })
})

able('waits, flame graph, failures and blockers follow the range; what cannot is listed', async (t) => {
  const { page, model } = await opened()
  await selectRange(page, model.series)
  const notes = await page.locator('.unfiltered:visible').allInnerTexts()
  t.deepEqual(notes.map((note) => note.replace(/\d+/g, 'N')), [
    'Quantiles and curves of a range are estimates: the true ones are within N %.',
    'Quartiles and requests of a range are not known.',
    'N of the N on this page.'
  ])
  t.deepEqual((await cells(page, 'waits', 'query')).slice(1, 4), ['GET /slow', '600 ms', '60 %'])
  t.deepEqual((await cells(page, 'waits', 'until TIMER')).slice(1, 4), ['GET /slow', '100 ms', '10 %'])
  t.regex(await page.getByRole('treeitem').first().getAttribute('aria-label') ?? '', /^all requests, 1\.05 s, 100 % of the whole, 15 times$/)
  t.regex(await page.getByRole('treeitem', { name: /^waited: TCP/ }).getAttribute('aria-label') ?? '', /, 600 ms, 57 % of the whole$/)
  t.is((await cells(page, 'failures', 'TypeError'))[1], '5')
  t.deepEqual((await cells(page, 'blockers', 'GET /slow')).slice(2, 4), ['1', '50.0 ms'])
  await slider(page, 'Begin').press('Home')
  await slider(page, 'End').press('Home')
  t.is(await page.locator('#failures tbody tr').count(), 0)
  t.is(await page.locator('#failures .table > .note').innerText(), 'No failure in what is selected.')

  for (const { sites } of model.routes) for (const site of sites) delete site.byBucket
  const untimed = await open(model)
  await slider(untimed.page, 'Begin').press('PageUp')
  t.is(await untimed.page.locator('#waits .unfiltered:visible').innerText(), 'Waits are not filtered by the range of time.')
})

able('routes, trace ids and failed requests are found everywhere', async (t) => {
  const { page, model } = await opened()
  const field = page.getByLabel('Route or trace')
  await field.fill('QUICK')
  t.deepEqual(await page.locator('#routes tbody th .name').allInnerTexts(), ['GET /quick'])
  t.is(await page.locator('#waits tbody tr').count(), 0)
  t.like(await tiles(page), { Spans: '30' })
  t.regex(await page.locator('.flame-chart').innerText(), /GET \/quick/)
  t.notRegex(await page.locator('.flame-chart').innerText(), /GET \/slow/)
  const { traceId } = model.slowest[3]
  await field.fill(traceId)
  t.is(await page.locator('#slowest tbody tr').count(), 1)
  t.true((await page.locator('#detail').innerText()).includes(traceId))
  t.deepEqual(await page.locator('#routes tbody th .name').allInnerTexts(), ['GET /slow'])
  await page.locator('.filter-line').getByRole('button', { name: 'Show all' }).click()
  t.is(await field.inputValue(), '')
  await page.locator('.filters').getByText('failed').click()
  t.is(await page.locator('#slowest tbody tr').count(), 0, 'the slowest did not fail')
  t.is(await page.locator('#routes .unfiltered:visible').innerText(), 'Figures are not filtered by the status.')
})

able('waits have share, quartiles and callers, and lead to the frame and to a request', async (t) => {
  const { page, errors } = await opened()
  const row = page.locator('#waits tbody tr').first()
  t.regex((await row.locator('th').innerText()).replace(/\s+/g, ' '), /^query \(pool\.js:34\) ← report \(report\.js:24\) ?until TCP 127\.0\.0\.1:5432$/)
  t.deepEqual((await cells(page, 'waits', 'query')).slice(1), ['GET /slow', '3.60 s', '60 %', '60.0 ms', '60.0 ms', '60.0 ms', '60.0 ms', '120', '60'])
  const bar = await row.locator('.share-bar .part').evaluate((part) => part.getBoundingClientRect().width / Number(part.parentElement && getComputedStyle(part.parentElement).gridTemplateColumns.split('px')[0]))
  t.true(Math.abs(bar - 0.6) < 0.01)
  await row.locator('th').getByRole('button').press('Enter')
  t.is(await page.locator('.flame-detail h3').innerText(), 'TCP 127.0.0.1:5432')
  t.is(await page.evaluate(() => document.activeElement?.getAttribute('role')), 'tree')
  await row.getByRole('button', { name: '60', exact: true }).click()
  t.is(await page.locator('#detail h3').innerText(), 'GET /slow')
  t.deepEqual(errors, [])
})

able('failures have their full chain, first and last time', async (t) => {
  const { page } = await opened()
  t.deepEqual((await cells(page, 'failures', 'TypeError')).slice(0, 4), ['TypeError: no user', '5', 'work (report.js:31)', 'GET /quick × 5'])
  const chain = page.locator('#failures .stack')
  t.false(await chain.isVisible())
  await page.locator('#failures summary').press('Enter')
  t.true(await chain.isVisible())
  t.is(await chain.locator('.hop').count(), 2)
})

able('the verdict comes first, and leads to its subjects', async (t) => {
  const { page, errors } = await opened()
  t.is(await page.locator('main > *').first().getAttribute('id'), 'verdict')
  const finding = page.locator('.findings li')
  t.deepEqual((await finding.innerText()).split('\n').filter(Boolean), [
    'pool is the limit', 'explains 3.60 s, 60 % of the time', 'GET /slow waits for a free connection.', 'Enlarge the pool.', 'show its waits', 'show it in the flame graph', 'show only GET /slow'
  ])
  await finding.getByRole('button', { name: 'show its waits' }).press('Enter')
  t.regex(await page.evaluate(() => document.activeElement?.textContent ?? ''), /^query \(pool\.js:34\)/)
  await finding.getByRole('button', { name: 'show it in the flame graph' }).click()
  t.is(await page.locator('.flame-detail h3').innerText(), query)
  await finding.getByRole('button', { name: 'show only GET /slow' }).click()
  t.like(await tiles(page), { Spans: '60' })
  t.deepEqual(errors, [])
})

able('callbacks and waits of a request are named by await site, and types in words', async (t) => {
  const { page } = await opened()
  const row = page.locator('.spans .wait-row').first()
  t.is(await row.locator('th').getAttribute('title'), `waited 10.0 ms from + 10.0 ms at ${report} until TIMER`)
  t.deepEqual([await row.locator('th').innerText(), await row.locator('.number').innerText()], ['report (report.js:24) until TIMER', '10.0 ms'])
  const gap = await row.locator('rect.gap').boundingBox()
  const bar = await page.locator('.spans .bar').first().boundingBox()
  t.true(Math.abs(Number(gap?.width) / Number(bar?.width) - 0.1) < 0.01)
  await row.getByRole('button').click()
  t.is(await page.locator('.spans .chosen th').innerText(), 'report (report.js:24) until TIMER')
  t.is(await page.locator('#detail h3').innerText(), 'GET /slow', 'the span that waited')
  const callbacks = page.locator('#detail tbody tr')
  t.deepEqual(await callbacks.first().locator('td, th').allInnerTexts(), ['HTTP request', '', '0 µs', '10.0 ms'])
  t.deepEqual(await callbacks.nth(1).locator('td, th').allInnerTexts(), ['data on a TCP connection', '10.0 ms at report (report.js:24)', '20.0 ms', '20.0 ms'])
  t.is(await callbacks.first().locator('bdi').first().getAttribute('title'), 'HTTPINCOMINGMESSAGE')
  t.regex(await page.locator('#detail').innerText(), /Where it ran\n20\.0 ms at query \(\/app\/lib\/pool\.js:34:9\) ← report \(report\.js:24\) after await/)
  t.notRegex(await page.locator('main').innerText(), /HTTPINCOMINGMESSAGE|TCPWRAP|\bIdle\b/)
})

able('axis labels never touch, at any width and zoom', async (t) => {
  const { page } = await opened()
  for (const width of [400, 700, 1000, 1280]) {
    await page.setViewportSize({ width, height: 900 })
    for (const zoom of ['', 'timeline', 'timeline']) {
      if (zoom !== '') await page.getByRole('button', { name: `Zoom in: ${zoom}` }).click()
      await page.waitForTimeout(50)
      const gaps = await page.evaluate(() => [...document.querySelectorAll('svg.axis')].flatMap((axis) => {
        const boxes = [...axis.querySelectorAll('text')].map((text) => text.getBoundingClientRect()).sort((a, b) => a.x - b.x)
        return boxes.slice(1).map((box, i) => box.left - boxes[i].right)
      }))
      t.true(gaps.length > 4 && Math.min(...gaps) > 6, `${width} px, ${zoom}: ${Math.min(...gaps)}`)
    }
  }
})

able('at 400 px a table shows that it continues, and nothing is cut off', async (t) => {
  const { page } = await opened({ viewport: { width: 400, height: 800 } })
  t.true(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth))
  const shadow = () => page.locator('#waits .table').evaluate((table) => [getComputedStyle(table, '::before').opacity, getComputedStyle(table, '::after').opacity])
  await page.waitForFunction(() => getComputedStyle(/** @type {any} */ (document.querySelector('#waits .table')), '::after').opacity === '1')
  t.deepEqual(await shadow(), ['0', '1'])
  await page.locator('#waits .scroll').evaluate((region) => { region.scrollLeft = 10_000 })
  await page.waitForFunction(() => getComputedStyle(/** @type {any} */ (document.querySelector('#waits .table')), '::after').opacity === '0')
  t.deepEqual(await shadow(), ['1', '0'])
  await page.setViewportSize({ width: 1280, height: 800 })
  t.true(await page.locator('#waits .scroll').evaluate((region) => region.scrollWidth <= region.clientWidth))
})

able('axe finds no violation while a range is selected', async (t) => {
  const init = fs.readFileSync(axe, 'utf8')
  const { page, model } = await opened({ colorScheme: 'dark', viewport: { width: 400, height: 800 }, init })
  await slider(page, 'End').focus()
  for (let i = 0; i < 3; i++) await page.keyboard.press('PageDown')
  t.true(model.series.buckets > 10)
  await page.locator('#failures summary').click()
  const { violations } = await page.evaluate(() => /** @type {any} */ (window).axe.run())
  const findings = violations.map((/** @type {any} */ { id, nodes }) => [id, nodes[0].failureSummary])
  t.deepEqual(findings, [])
})
