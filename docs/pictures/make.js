'use strict'

// npm run pictures: makes the pictures of the README from real runs of shop.js and
// examples/08-where-time-goes.js.
//
//   report.svg   what --blocked prints on a terminal, as SVG; script of util-linux makes the terminal
//   page.png     the page of longstack report --html, in Chromium: verdict and figures
//   flame.png    its flame graph
//
// CHROMIUM names the browser where it is not /usr/bin/chromium.

const { execFileSync, spawn } = require('node:child_process')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { pathToFileURL } = require('node:url')
const { chromium } = require('playwright-core')

const root = path.join(__dirname, '..', '..')
const command = path.join(root, 'lib', 'cli', 'main.js')
const program = path.join(__dirname, 'shop.js')
const example = path.join(root, 'examples', '08-where-time-goes.js')

const PAGE = { width: 1180, height: 820 }
const COLUMNS = 110 // of the terminal
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

const ESCAPE = '\u001b['

/**
 * Runs the command line of longstack in a directory, on a terminal.
 * @param {string} cwd
 * @param {string[]} commandArgs
 * @returns {Promise<string>} what it wrote, coloured
 */
function longstack (cwd, commandArgs) {
  return new Promise((resolve, reject) => {
    const words = [process.execPath, command, ...commandArgs].map((word) => `'${word}'`).join(' ')
    const env = { ...process.env, TERM: 'xterm-256color' }
    const stdio = /** @type {const} */ (['ignore', 'pipe', 'inherit'])
    const args = ['-qec', `stty cols ${COLUMNS}; ${words}`, '/dev/null']
    const child = spawn('script', args, { cwd, env, stdio })
    let text = ''
    child.stdout.setEncoding('utf8').on('data', (chunk) => { text += chunk })
    child.on('error', reject).on('close', (code) => {
      if (code === 0) resolve(text.replaceAll('\r\n', '\n'))
      else reject(new Error(text))
    })
  })
}

/** @param {string} text */
const escape = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')

/**
 * Splits a line where its colour changes.
 * @param {string} line with ANSI escapes, not nested
 * @returns {Array<{ content: string, style: string }>}
 */
function partsOf (line) {
  const [first, ...parts] = line.split(ESCAPE)
  const coloured = parts.map((part) => {
    const end = part.indexOf('m')
    return { content: part.slice(end + 1), style: styles[part.slice(0, end)] ?? '' }
  })
  return [{ content: first, style: '' }, ...coloured].filter(({ content }) => content !== '')
}

/**
 * Draws the output of a terminal.
 * @param {string} text with ANSI escapes, of which each line is closed
 */
function terminalAsSvg (text) {
  const lines = text.trimEnd().split('\n').map(partsOf)
  const columns = Math.max(...lines.map((parts) => parts.map(({ content }) => content).join('').length))
  const width = Math.ceil(columns * COLUMN_PX + 2 * MARGIN_PX)
  const height = lines.length * LINE_PX + 2 * MARGIN_PX
  const texts = lines.map((parts, i) => {
    const y = MARGIN_PX + (i + 0.75) * LINE_PX
    const spans = parts.map(({ content, style }) => style === ''
      ? escape(content)
      : `<tspan ${style}>${escape(content)}</tspan>`)
    return `<text x="${MARGIN_PX}" y="${y}" xml:space="preserve">${spans.join('')}</text>`
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

/**
 * Runs the example, and returns the spans of its service.
 * @returns {string} as written, with short paths
 */
function spansOfExample () {
  const output = execFileSync(process.execPath, [example, '--keep'], { encoding: 'utf8' })
  const file = output.trimEnd().split(' ').at(-1) ?? ''
  try {
    return fs.readFileSync(file, 'utf8').replaceAll(path.dirname(example), '/app')
  } finally {
    fs.rmSync(path.dirname(file), { recursive: true })
  }
}

/** @param {string} html */
async function drawPage (html) {
  const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium'
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })
  try {
    const page = await browser.newPage({ viewport: PAGE })
    await page.goto(pathToFileURL(html).href)
    await page.screenshot({ path: path.join(__dirname, 'page.png') })
    await page.locator('#paths').screenshot({ path: path.join(__dirname, 'flame.png') })
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
    fs.writeFileSync(spans, spansOfExample())
    await longstack(directory, ['report', 'spans.jsonl', '--html', 'page.html'])
    await drawPage(html)
  } finally {
    fs.rmSync(directory, { recursive: true, force: true })
  }
}

main().catch((error) => {
  console.error(error)
  process.exitCode = 1
})
