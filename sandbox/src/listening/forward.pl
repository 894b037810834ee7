# Listens at 127.0.0.1 inside a container, and forwards all connections over stdin and stdout. forwarder.ts describes the frames.
use strict;
use Socket;
use Fcntl qw(F_SETFL O_NONBLOCK);
use Errno qw(EAGAIN EINTR);
my ($MOST, $WINDOW, $PART) = (256, 65536, 16384);
my ($OPEN, $DATA, $END, $CREDIT, $CLOSE) = (1 .. 5);
$SIG{PIPE} = 'IGNORE';
socket(my $listening, PF_INET, SOCK_STREAM, 0) or exit 1;
bind($listening, pack_sockaddr_in(0, INADDR_LOOPBACK)) && listen($listening, 511) or exit 1;
fcntl($listening, F_SETFL, O_NONBLOCK);
my ($port) = unpack_sockaddr_in(getsockname $listening);
my (%open, $input, $last);

sub later { return $! == EAGAIN || $! == EINTR }

sub print_all {
  my ($bytes) = @_;
  while (length $bytes) {
    my $done = syswrite(STDOUT, $bytes);
    if (defined $done) { substr($bytes, 0, $done, '') }
    elsif (later()) { my $ready = ''; vec($ready, 1, 1) = 1; select(undef, $ready, undef, 1) }
    else { exit 0 }
  }
}

sub frame { print_all(pack('CNN', $_[0], $_[1], $_[2]) . (defined $_[3] ? $_[3] : '')) }

sub drop { my ($id) = @_; close $open{$id}{socket}; delete $open{$id} }

sub receive {
  my $size = sysread(STDIN, $input, 65536, length $input);
  exit 0 if defined $size ? $size == 0 : !later();
  while (length $input >= 9) {
    my ($kind, $id, $number) = unpack('CNN', $input);
    my $whole = 9 + ($kind == $DATA ? $number : 0);
    last if length $input < $whole;
    my $bytes = substr($input, 9, $whole - 9);
    substr($input, 0, $whole, '');
    my $one = $open{$id} or next;
    if ($kind == $DATA) { $one->{out} .= $bytes }
    elsif ($kind == $CREDIT) { $one->{window} += $number }
    elsif ($kind == $END) { $one->{ending} = 1 }
    elsif ($kind == $CLOSE) { $one->{closing} = 1 }
  }
}

sub take {
  accept(my $socket, $listening) or return;
  fcntl($socket, F_SETFL, O_NONBLOCK);
  setsockopt($socket, 6, 1, 1); # TCP_NODELAY
  my $id = ++$last;
  $open{$id} = { socket => $socket, fd => fileno $socket, out => '', window => $WINDOW };
  frame($OPEN, $id, 0);
}

sub pass_on { # from the socket of connection $id to the worker
  my ($id) = @_;
  my $one = $open{$id};
  my $most = $one->{window} < $PART ? $one->{window} : $PART;
  my $size = sysread($one->{socket}, my $bytes, $most);
  if (!defined $size) { return if later(); frame($CLOSE, $id, 0); drop($id) }
  elsif ($size == 0) { $one->{ended} = 1; frame($END, $id, 0) }
  else { $one->{window} -= $size; frame($DATA, $id, $size, $bytes) }
}

sub deliver { # from the worker to the socket of connection $id
  my ($id) = @_;
  my $one = $open{$id};
  my $size = syswrite($one->{socket}, $one->{out});
  if (!defined $size) { return if later(); frame($CLOSE, $id, 0); drop($id); return }
  substr($one->{out}, 0, $size, '');
  frame($CREDIT, $id, $size);
}

sub end_idle {
  my ($id) = @_;
  my $one = $open{$id};
  return if length $one->{out};
  if ($one->{closing}) { return drop($id) }
  if ($one->{ending} && !$one->{shut}) { $one->{shut} = 1; shutdown($one->{socket}, 1) }
  drop($id) if $one->{shut} && $one->{ended};
}

$input = '';
print_all("swefarm $port\n");
while (1) {
  my ($read, $write) = ('', '');
  vec($read, 0, 1) = 1;
  vec($read, fileno $listening, 1) = 1 if keys %open < $MOST;
  for my $one (values %open) {
    vec($read, $one->{fd}, 1) = 1 if !$one->{ended} && !$one->{closing} && $one->{window} > 0;
    vec($write, $one->{fd}, 1) = 1 if length $one->{out};
  }
  next if select($read, $write, undef, undef) < 0;
  my %before = map { $_ => $open{$_}{fd} } keys %open;
  receive() if vec($read, 0, 1);
  take() if vec($read, fileno $listening, 1);
  while (my ($id, $fd) = each %before) {
    pass_on($id) if vec($read, $fd, 1);
    deliver($id) if $open{$id} && vec($write, $fd, 1);
  }
  for my $id (keys %open) { end_idle($id) }
}
