'use strict'

// The page's async flame graph in a real Chromium: widths are ms, keys and clicks move and zoom, a search
// sums up matches, and two runs are compared per request.

/* global getComputedStyle */

const fs = require('node:fs')
const axe = require.resolve('axe-core')
const { able, load, modelOf, open } = require('../helpers/page')

/** @typedef {import('playwright-core').Page} Page */

/** @param {string} name @param {string} kind @param {number} ms @param {any} [rest] */
const node = (name, kind, ms, rest = {}) => ({ name, kind, ms, count: 1, children: [], ...rest })

const query = 'query (/app/pool.js:34:9)'
const report = 'report (/app/app.js:24:9)'

/**
 * 10 requests of 100 ms: 60 waited at a query, 20 delayed there, 10 ran, 10 ran beside; and 5 of 20 ms.
 * @param {number} [slower]
 */
function tree (slower = 1) {
  const wait = 600 * slower
  const atQuery = node(query, 'frame', wait + 200, {
    children: [node('TCP 127.0.0.1:5432', 'waited', wait, { count: 30 }), node('delayed by others', 'delayed', 200)]
  })
  const routes = [
    node('GET /report', 'route', wait + 400, {
      count: 10,
      traceIds: ['a'.repeat(32)],
      children: [
        node(report, 'frame', wait + 300, { children: [atQuery, node('ran', 'ran', 100)] }),
        node('ran beside', 'beside', 100)
      ]
    }),
    node('GET /cheap', 'route', 100, { count: 5, children: [node('ran', 'ran', 100)] })
  ]
  return node('all requests', 'root', wait + 500, { count: 15, children: routes })
}

/** @param {Page} page @param {string} name the whole of its short name */
const frame = (page, name) => page.getByRole('treeitem').filter({ has: page.getByText(name, { exact: true }) }).first()

/** @param {Page} page @param {string} name */
async function boxOf (page, name) {
  const box = await frame(page, name).boundingBox()
  return { x: Number(box?.x), width: Number(box?.width) }
}

/** @param {import('playwright-core').Page} page */
const selected = (page) => page.locator('.flame-detail h3').innerText()

/** @param {any} [options] @param {any} [extra] */
async function opened (options, extra = {}) {
  const model = await modelOf(load({ spans: 100 }))
  Object.assign(model, { tree: tree(), slowTree: node('all requests', 'root', 300, { children: [node('GET /report', 'route', 300, { count: 1, children: [node('TIMER', 'waited', 300)] })] }) }, extra)
  return open(model, options)
}

able('a frame is as wide as its share of the time', async (t) => {
  const { page, errors } = await opened()
  const whole = await boxOf(page, 'all requests')
  for (const [name, ms] of /** @type {const} */ ([['GET /report', 1000], ['query (pool.js:34)', 800], ['TCP 127.0.0.1:5432', 600], ['delayed by others', 200], ['GET /cheap', 100]])) {
    const { width } = await boxOf(page, name)
    t.true(Math.abs(width / whole.width - ms / 1100) < 0.001, `${name}: ${width} of ${whole.width}`)
  }
  t.true(Math.abs((await boxOf(page, 'delayed by others')).x - whole.x - whole.width * 600 / 1100) < 1, 'after the longer one')
  t.is(await frame(page, 'TCP 127.0.0.1:5432').getAttribute('aria-label'), 'waited: TCP 127.0.0.1:5432, 600 ms, 55 % of the whole, 30 times')
  const looks = await page.locator('.flame-chart .frame').evaluateAll((all) => Object.fromEntries(all.map((one) => [one.className, getComputedStyle(one).backgroundImage])))
  t.is(looks['frame ran'], 'none', 'what ran is solid')
  t.is(new Set(['frame waited', 'frame delayed', 'frame beside'].map((kind) => /\d+deg/.exec(looks[kind])?.[0])).size, 3, 'and not by colour alone')
  t.deepEqual(errors, [])
})

able('arrow keys walk through the tree, Enter zooms in, Escape out', async (t) => {
  const { page, errors } = await opened()
  const chart = page.getByRole('tree')
  await chart.focus()
  const whole = (await boxOf(page, 'all requests')).width
  for (const name of ['GET /report', report, query]) {
    await page.keyboard.press('ArrowDown')
    t.is(await selected(page), name)
  }
  t.is(await chart.getAttribute('aria-activedescendant'), await frame(page, 'query (pool.js:34)').getAttribute('id'))
  await page.keyboard.press('Enter')
  t.is((await boxOf(page, 'query (pool.js:34)')).width, whole)
  t.true(Math.abs((await boxOf(page, 'TCP 127.0.0.1:5432')).width / whole - 0.75) < 0.001)
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('ArrowRight')
  t.is(await selected(page), 'delayed by others')
  t.deepEqual(await page.locator('.breadcrumbs li').allTextContents(), ['all requests', 'GET /report', report, query])
  await page.keyboard.press('Escape')
  t.true(Math.abs((await boxOf(page, 'query (pool.js:34)')).width / whole - 800 / 1100) < 0.001)
  await page.keyboard.press('Home')
  t.is(await selected(page), 'all requests')
  await frame(page, 'GET /cheap').click()
  t.is((await boxOf(page, 'GET /cheap')).width, whole)
  t.is(await frame(page, 'GET /report').count(), 0)
  await page.getByRole('button', { name: 'Zoom out', exact: true }).click()
  t.true((await boxOf(page, 'GET /report')).width < whole)
  t.deepEqual(errors, [])
})

able('the details have share, mean, parts, and the requests behind a frame', async (t) => {
  const model = await modelOf(load({ spans: 100 }))
  const { traceId, name } = model.slowest[1]
  const whole = tree()
  whole.children[0].traceIds = [traceId, 'f'.repeat(32)]
  const { page } = await opened({}, { ...model, tree: whole })
  await frame(page, 'GET /report').click()
  const text = await page.locator('.flame-detail').innerText()
  t.regex(text, /Total\s+1\.00 s · 91 % of the whole\s+Requests\s+10\s+Mean\s+100 ms per request/)
  t.regex(text, /Ran\s+100 ms\s*10 %\s+Waited\s+600 ms\s*60 %\s+Delayed\s+200 ms\s*20 %\s+Ran beside\s+100 ms\s*10 %/)
  t.regex(text, /trace f{32}/, 'one that is not on the page')
  await page.locator('.behind').getByRole('button', { name }).click()
  t.regex(await page.locator('#request select').evaluate((select) => /** @type {any} */ (select).selectedOptions[0].text), /^2\. /)
})

able('a search marks frames and counts nested ones once', async (t) => {
  const { page } = await opened()
  const field = page.getByLabel('Find frames')
  await field.fill('APP.JS')
  t.is(await page.locator('.flame [role=status]').innerText(), '1 found: 900 ms, 82 %')
  await field.fill('(/app/')
  t.is(await page.locator('.flame [role=status]').innerText(), '2 found: 900 ms, 82 %', 'the query is inside of the report')
  t.is(await page.locator('.flame-chart .matched').count(), 2)
  await field.press('Enter')
  t.is(await selected(page), report)
  await field.press('Enter')
  t.is(await selected(page), query)
  await field.press('Escape')
  t.is(await page.locator('.flame-chart .matched, .flame-chart .dimmed').count(), 0)
})

able('the graph shows one route, or the slowest 1 %', async (t) => {
  const { page } = await opened()
  const labels = () => page.locator('.flame-chart .frame').allTextContents()
  const routes = page.locator('#paths select')
  await routes.selectOption('GET /cheap')
  t.deepEqual(await labels(), ['GET /cheap', 'ran'])
  await routes.selectOption({ index: 0 })
  await page.getByText('slowest 1 %').click()
  t.deepEqual(await labels(), ['all requests', 'GET /report', 'TIMER'])
})

able('two runs: growth per request of each route', async (t) => {
  const model = await modelOf(load({ spans: 100 }), { compare: load({ spans: 100 }) })
  model.tree = tree()
  model.compare.tree = tree(2)
  model.compare.tree.children[0].children.pop()
  const { page, errors } = await open(model)
  const whole = (await boxOf(page, 'all requests')).width
  t.true(Math.abs((await boxOf(page, 'TCP 127.0.0.1:5432')).width / whole - 1200 / 1700) < 0.001, 'widths of the second run')
  t.regex(String(await frame(page, 'TCP 127.0.0.1:5432').getAttribute('class')), /differential grows strong/)
  t.is((await frame(page, 'TCP 127.0.0.1:5432').innerText()).slice(0, 1), '▲')
  t.regex(String(await frame(page, 'GET /cheap').getAttribute('class')), /differential same/)
  await frame(page, 'TCP 127.0.0.1:5432').click()
  t.regex(await page.locator('.flame-detail').innerText(), /Changed\s+\+100 %\s+60\.0 ms → 120 ms per request from before\.jsonl to after\.jsonl/)
  await page.locator('.flame .toolbar').getByText('before.jsonl').click()
  await frame(page, 'ran beside').click()
  t.regex(await page.locator('.flame-detail').innerText(), /Changed\s+gone\s+10\.0 ms → 0 µs per request/)
  t.deepEqual(errors, [])
})

able('5,000 nodes are drawn at once, those narrower than a pixel only if selected', async (t) => {
  const children = Array.from({ length: 4990 }, (_, i) => node(`f${i} (/app/a.js:${i}:1)`, 'frame', 10_000 / (i + 1) ** 1.2, { children: [] }))
  const ms = children.reduce((sum, child) => sum + child.ms, 0)
  const { page } = await opened({}, { tree: node('all', 'root', ms, { children: [node('GET /', 'route', ms, { count: 9, children })] }) })
  const drawn = await page.locator('.flame-chart .frame').count()
  t.true(drawn > 50 && drawn < 1300, `${drawn}`)
  await page.getByLabel('Find frames').fill('f4989 ')
  await page.getByLabel('Find frames').press('Enter')
  t.is(await selected(page), 'f4989 (/app/a.js:4989:1)')
  t.is(await page.locator('.flame-chart [aria-selected=true]').count(), 1)
})

for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
  able(`axe finds no violation in the flame graph, ${colorScheme}`, async (t) => {
    const model = await modelOf(load({ spans: 100 }), { compare: load({ spans: 100 }) })
    Object.assign(model, { tree: tree(), slowTree: tree() })
    model.compare.tree = tree(2)
    const init = fs.readFileSync(axe, 'utf8')
    const { page } = await open(model, { colorScheme, viewport: { width: 400, height: 800 }, init })
    await page.getByLabel('Find frames').fill('query')
    t.true(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth))
    const { violations } = await page.evaluate(() => /** @type {any} */ (window).axe.run('#paths'))
    const findings = violations.map((/** @type {any} */ { id, nodes }) => [id, nodes[0].failureSummary])
    t.deepEqual(findings, [])
  })
}
