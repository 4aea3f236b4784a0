'use strict'

// npm run pictures: makes the pictures of the README from real runs of shop.js.
//
//   report.svg   what --blocked prints on a terminal: the ANSI colours of that output as SVG
//   page.png     the page of longstack report --html, in Chromium
//
// CHROMIUM names the browser where it is not /usr/bin/chromium.

const { spawn } = require('node:child_process')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { pathToFileURL } = require('node:url')
const { chromium } = require('playwright-core')

const root = path.join(__dirname, '..', '..')
const command = path.join(root, 'lib', 'cli', 'main.js')
const program = path.join(__dirname, 'shop.js')

const PAGE = { width: 1180, height: 820 }
const FONT_PX = 14
const COLUMN_PX = 8.43 // of a character in the fonts below
const LINE_PX = 20
const MARGIN_PX = 16

/**
 * The SGR codes that chalk writes for lib/format/paint.js, as attributes of SVG.
 * @type {Record<string, string>}
 */
const styles = {
  1: 'font-weight="bold"',
  2: 'fill="#8b949e"',
  31: 'fill="#ff7b72"',
  33: 'fill="#e3b341"',
  36: 'fill="#56d4dd"'
}

const coloured = /^\x1b\[(\d+)m(.*?)\x1b\[\d+m$/ // eslint-disable-line no-control-regex

/**
 * Runs the command line of longstack in a directory.
 * @param {string} cwd
 * @param {string[]} args
 * @returns {Promise<string>} what it wrote to stderr, coloured
 */
function longstack (cwd, args) {
  return new Promise((resolve, reject) => {
    const env = { ...process.env, FORCE_COLOR: '1' }
    const stdio = /** @type {const} */ (['ignore', 'ignore', 'pipe'])
    const child = spawn(process.execPath, [command, ...args], { cwd, env, stdio })
    let text = ''
    child.stderr.setEncoding('utf8').on('data', (chunk) => { text += chunk })
    child.on('error', reject).on('close', (code) => code === 0 ? resolve(text) : reject(new Error(text)))
  })
}

/** @param {string} text */
const escape = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')

/**
 * Draws the output of a terminal.
 * @param {string} text with ANSI escapes, of which each line is closed
 */
function terminalAsSvg (text) {
  const lines = text.trimEnd().split('\n').map((line) => {
    const [, code, content] = coloured.exec(line) ?? [undefined, '', line]
    return { content, style: styles[code] ?? '' }
  })
  const columns = Math.max(...lines.map(({ content }) => content.length))
  const width = Math.ceil(columns * COLUMN_PX + 2 * MARGIN_PX)
  const height = lines.length * LINE_PX + 2 * MARGIN_PX
  const texts = lines.map(({ content, style }, i) => {
    const y = MARGIN_PX + (i + 0.75) * LINE_PX
    return `<text x="${MARGIN_PX}" y="${y}" ${style} xml:space="preserve">${escape(content)}</text>`
  })
  return [
    '<svg xmlns="http://www.w3.org/2000/svg" ' +
      `width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">`,
    `<rect width="${width}" height="${height}" rx="8" fill="#0d1117"/>`,
    `<g font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="${FONT_PX}" fill="#e6edf3">`,
    ...texts,
    '</g>',
    '</svg>',
    ''
  ].join('\n')
}

/**
 * Finds the report of a callback of a route that is over.
 * @param {string} text all reports
 * @param {string} route
 */
function reportOf (text, route) {
  const reports = text.split(/^(?=\S*longstack: )/m)
  const report = reports.find((candidate) => {
    const [headline] = candidate.split('\n', 1)
    return headline.includes('was blocked') && headline.includes(route)
  })
  if (report === undefined) throw new Error(`no callback of ${route} was reported:\n${text}`)
  return report
}

/** @param {string} html @param {string} picture */
async function drawPage (html, picture) {
  const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium'
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })
  try {
    const page = await browser.newPage({ viewport: PAGE })
    await page.goto(pathToFileURL(html).href)
    await page.screenshot({ path: picture })
  } finally {
    await browser.close()
  }
}

async function main () {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-pictures-'))
  try {
    const spans = path.join(directory, 'spans.jsonl')
    const html = path.join(directory, 'page.html')
    const text = await longstack(directory, ['run', '--spans', 'spans.jsonl', '--blocked', '30', program])
    const report = reportOf(text, 'GET /report').replaceAll(__dirname, '/app')
    fs.writeFileSync(path.join(__dirname, 'report.svg'), terminalAsSvg(report))
    fs.writeFileSync(spans, fs.readFileSync(spans, 'utf8').replaceAll(__dirname, '/app'))
    await longstack(directory, ['report', 'spans.jsonl', '--html', 'page.html'])
    await drawPage(html, path.join(__dirname, 'page.png'))
  } finally {
    fs.rmSync(directory, { recursive: true, force: true })
  }
}

main().catch((error) => {
  console.error(error)
  process.exitCode = 1
})
