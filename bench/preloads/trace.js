'use strict'

require('trace')
