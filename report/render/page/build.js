'use strict'

// Bundles the page's scripts and styles into client.json.br, which ships in the tarball so that the page
// needs no package at run time. Brotli makes it a fifth smaller there than gzip. In a checkout, the file is
// rebuilt if one of its sources is newer.

const fs = require('node:fs')
const path = require('node:path')
const { brotliCompressSync, brotliDecompressSync } = require('node:zlib')

const file = path.join(__dirname, 'client.json.br')
const NEVER_INLINE = /<\/script|<!--/i // would end the script element

/** @typedef {Record<'style' | 'library' | 'report' | 'profile', string> & { sources: string[] }} Client */

/** @returns {Client} texts of the page; sources are relative to this directory */
function build () {
  const { outputFiles, metafile } = require('esbuild').buildSync({
    entryPoints: ['page.css', 'd3.mjs', 'main.js', 'profile.js'].map((name) => `client/${name}`),
    absWorkingDir: __dirname,
    bundle: true,
    charset: 'utf8',
    logLevel: 'silent',
    metafile: true,
    minify: true,
    outdir: 'client',
    target: 'es2023',
    write: false
  })
  const [style, d3, report, profile] = outputFiles.map(({ text }) => text) // in the order of entryPoints
  if (NEVER_INLINE.test(d3 + report + profile)) throw new Error(`A script contains ${NEVER_INLINE}.`)
  const inputs = Object.keys(metafile.inputs)
  const sources = inputs.filter((input) => !input.includes('node_modules/'))
  const client = { sources, style, library: `${licencesOf(inputs)}${d3}`, report, profile }
  const unfinished = `${file}.${process.pid}`
  fs.writeFileSync(unfinished, brotliCompressSync(JSON.stringify(client)))
  fs.renameSync(unfinished, file)
  return client
}

/**
 * Returns the licences of bundled packages as comments, because copies must contain them.
 * @param {string[]} inputs
 */
function licencesOf (inputs) {
  /** @type {Map<string, string[]>} */
  const packages = new Map()
  for (const directory of new Set(inputs.map((input) => /^.*node_modules\/[^/]+/.exec(input)?.[0]))) {
    if (directory === undefined) continue
    const text = fs.readFileSync(path.join(__dirname, directory, 'LICENSE'), 'utf8').trim()
    packages.set(text, [...(packages.get(text) ?? []), path.basename(directory)])
  }
  return [...packages].map(([text, names]) => `/*\n${names.join(', ')}\n\n${text}\n*/\n`).join('')
}

/** @param {Client} client */
function isStale ({ sources }) {
  const { mtimeMs } = fs.statSync(file)
  return sources.some((name) => fs.statSync(path.join(__dirname, name)).mtimeMs > mtimeMs)
}

/** @returns {Client} */
function loadClient () {
  /** @type {Client | undefined} */
  const client = fs.existsSync(file)
    ? JSON.parse(String(brotliDecompressSync(fs.readFileSync(file))))
    : undefined
  try {
    return client === undefined || isStale(client) ? build() : client
  } catch (error) {
    if (client !== undefined) return client // installed package: the build tools are absent
    const { message } = /** @type {Error} */ (error)
    throw new Error(`The page's script is not built: run npm install, then npm run build. ${message}`)
  }
}

if (require.main === module) build()

module.exports = { loadClient }
