'use strict'

// OpenMetrics text as parsed by Prometheus' own Python client, which follows the specification strictly. It
// is fetched from PyPI once.

const { spawnSync } = require('node:child_process')
const fs = require('node:fs')
const path = require('node:path')
const { root } = require('./run')
const { skip } = require('./skip')

const PACKAGE = 'prometheus-client==0.26.0'
const home = path.join(root, '.cache', PACKAGE)
const PARSE = `
import json, sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse
print(json.dumps([{'name': f.name, 'type': f.type, 'unit': f.unit, 'help': f.documentation,
  'samples': [{'name': s.name, 'labels': s.labels, 'value': s.value} for s in f.samples]}
  for f in parse(sys.stdin.read())]))`

/**
 * @param {import('ava').ExecutionContext} t
 * @returns {boolean} true if the parser is missing, and may be
 */
function missing (t) {
  if (fs.existsSync(home)) return false
  const temporary = fs.mkdtempSync(`${home}.`)
  const pip = ['-m', 'pip', 'install', '--quiet', '--no-deps', '--only-binary=:all:']
  const { status, stderr, error } =
    spawnSync('python3', [...pip, '--target', temporary, PACKAGE], { encoding: 'utf8' })
  if (status === 0) {
    fs.renameSync(temporary, home)
    return false
  }
  fs.rmSync(temporary, { recursive: true })
  const reason = `there is no ${PACKAGE}: ${error?.message ?? stderr.trim()}`
  skip(t, reason)
  return true
}

/**
 * Parses OpenMetrics text; throws on a violation.
 * @param {string} text
 * @returns {Array<{ name: string, type: string, unit: string, help: string,
 *   samples: Array<{ name: string, labels: Record<string, string>, value: number }> }>}
 */
function parse (text) {
  const env = { ...process.env, PYTHONPATH: home }
  const { status, stdout, stderr } =
    spawnSync('python3', ['-c', PARSE], { input: text, env, encoding: 'utf8', maxBuffer: 1 << 26 })
  if (status !== 0) throw new Error(stderr)
  return JSON.parse(stdout)
}

module.exports = { missing, parse }
