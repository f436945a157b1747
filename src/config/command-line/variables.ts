/**
 * Environment variables that begin with STRATA_. Each belongs to an option or to Kubernetes, or is
 * a mistake, which is reported.
 *
 * The kubelet sets variables in every container for each service of its namespace, named after the
 * service. For `strata` and `strata-eu` they are:
 *
 *   STRATA_SERVICE_HOST=10.0.0.1     STRATA_EU_SERVICE_HOST   every service has this one
 *   STRATA_SERVICE_PORT=6443         …_SERVICE_PORT_HTTPS     one for each port with a name
 *   STRATA_PORT=tcp://10.0.0.1:6443  …_PORT_6443_TCP[_PROTO|_PORT|_ADDR]
 *
 * Such a variable may have the name of an option: a service strata-secure gives STRATA_SECURE_PORT.
 * Then the variable is the service's only if its value is a URL such as tcp://10.0.0.1:6443.
 */
import { failpoints, failpointVariable, parseFailpoint } from '../../diagnostics/failpoint.js';
import * as commandOptions from '../options/command-options.js';
import { environmentName, type CommandOption } from '../options/option.js';
import { configFileOption, options } from '../options/options.js';
import { suggestion } from './nearest.js';

type Environment = Readonly<Record<string, string | undefined>>;

const prefix = 'STRATA_';
const serviceHost = /^(STRATA(?:_[A-Z0-9]+)*)_SERVICE_HOST$/;
const ofService = /^_(?:SERVICE_HOST|SERVICE_PORT(?:_[A-Z0-9_]+)?|PORT(?:_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)?)$/;
const serviceUrl = /^(?:tcp|udp|sctp):\/\//;

/** The options of the server and of every command, because one shell may run several of them. */
const tables: readonly Readonly<Record<string, Pick<CommandOption<unknown>, 'flag'>>>[] = [
  { configFileOption },
  options,
  ...Object.values(commandOptions),
];
const known: ReadonlySet<string> = new Set([failpointVariable, ...tables.flatMap((table) => Object.values(table).map(environmentName))]);

/**
 * One sentence for each variable that belongs to no option and no service, and for an unknown
 * failpoint. Empty variables count as unset.
 */
export function unknownVariables(environment: Environment): readonly string[] {
  return [...unknownNames(environment), ...unknownFailpoint(environment)];
}

function unknownNames(environment: Environment): readonly string[] {
  return Object.entries(withoutServices(environment))
    .filter(([name, value]) => name.startsWith(prefix) && value !== undefined && value !== '' && !known.has(name))
    .map(([name]) => `unknown environment variable ${name}${suggestion(name, known)}`);
}

function unknownFailpoint({ [failpointVariable]: text = '' }: Environment): readonly string[] {
  if (text === '' || parseFailpoint(text) !== undefined) return [];
  return [`environment variable ${failpointVariable}=${text}: must be one of ${failpoints.join(', ')}, or one followed by :N`];
}

export function withoutServices(environment: Environment): Environment {
  const services = Object.keys(environment).flatMap((name) => serviceHost.exec(name)?.[1] ?? []);
  if (services.length === 0) return environment;
  const isService = (name: string, value = ''): boolean =>
    services.some((service) => name.startsWith(service) && ofService.test(name.slice(service.length))) &&
    (!known.has(name) || serviceUrl.test(value));
  return Object.fromEntries(Object.entries(environment).filter(([name, value]) => !isService(name, value)));
}
