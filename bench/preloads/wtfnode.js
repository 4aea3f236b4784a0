'use strict'

require('wtfnode')
