package replicator.debezium;

import java.nio.charset.StandardCharsets;

/**
 * Steps over the bytes of JSON as connectors write it, without white space: each takes the place where it begins and
 * gives the one behind it, or NO where the text is otherwise. What they pass every parser would take, and read alike.
 *
 * <p>Compiled by Spark's own Janino, as the classes that step (replicator/jvm/java_udfs.py).
 */
public final class Json {
    public static final int NO = -1;
    public static final byte[] NULL = {'n', 'u', 'l', 'l'};
    public static final byte[] TRUE = {'t', 'r', 'u', 'e'};
    public static final byte[] FALSE = {'f', 'a', 'l', 's', 'e'};
    private static final byte[] ESCAPED = {'"', '\\', '/', 'b', 'f', 'n', 'r', 't'};
    private static final int DEEPEST = 50;
    private static final int LONGEST = 8 << 20;

    private Json() {}

    /** Whether a text is so long that a parser may refuse what JSON allows. */
    public static boolean isTooLong(byte[] text) {
        return text.length > LONGEST;
    }

    /** A value of any kind. */
    public static int any(byte[] text, int at) {
        return any(text, at, 0);
    }

    private static int any(byte[] text, int at, int depth) {
        switch (byteAt(text, at)) {
            case '"': return string(text, at);
            case '{': return members(text, at, depth + 1);
            case '[': return elements(text, at, depth + 1);
            case 'n': return literal(text, at, NULL);
            default: return bare(text, at);
        }
    }

    /** A truth value or a number. */
    public static int bare(byte[] text, int at) {
        switch (byteAt(text, at)) {
            case 't': return literal(text, at, TRUE);
            case 'f': return literal(text, at, FALSE);
            default: return number(text, at);
        }
    }

    private static int members(byte[] text, int at, int depth) {
        if (depth > DEEPEST) return NO;
        if (byteAt(text, at + 1) == '}') return at + 2;
        int next = at;
        do {
            next = string(text, next + 1);
            if (next == NO || byteAt(text, next) != ':') return NO;
            next = any(text, next + 1, depth);
        } while (next != NO && byteAt(text, next) == ',');
        return next != NO && byteAt(text, next) == '}' ? next + 1 : NO;
    }

    private static int elements(byte[] text, int at, int depth) {
        if (depth > DEEPEST) return NO;
        if (byteAt(text, at + 1) == ']') return at + 2;
        int next = at;
        do {
            next = any(text, next + 1, depth);
        } while (next != NO && byteAt(text, next) == ',');
        return next != NO && byteAt(text, next) == ']' ? next + 1 : NO;
    }

    public static int string(byte[] text, int at) {
        if (byteAt(text, at) != '"') return NO;
        int next = at + 1;
        while (next != NO) {
            next = behindPlain(text, next);
            int c = byteAt(text, next);
            if (c == '"') return next + 1;
            next = c == '\\' ? escaped(text, next + 1) : NO;
        }
        return NO;
    }

    /** Behind a backslash; of a pair of surrogates no half is a text. */
    private static int escaped(byte[] text, int at) {
        if (byteAt(text, at) != 'u') return oneOf(text, at, ESCAPED);
        int first = byteAt(text, at + 1), second = byteAt(text, at + 2);
        boolean isHex = isHex(first) && isHex(second) && isHex(byteAt(text, at + 3)) && isHex(byteAt(text, at + 4));
        return isHex && (first != 'd' && first != 'D' || second >= '0' && second <= '7') ? at + 5 : NO;
    }

    private static boolean isHex(int c) {
        return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F';
    }

    /** What stands between quotes as it is. */
    public static int behindPlain(byte[] text, int at) {
        int next = at;
        while (isPlain(byteAt(text, next))) next++;
        return next;
    }

    public static boolean isPlain(int c) {
        return c >= ' ' && c != '"' && c != '\\';
    }

    /** A number of JSON of up to a hundred digits, as many behind the point, and nine of an exponent. */
    public static int number(byte[] text, int at) {
        int next = byteAt(text, at) == '-' ? at + 1 : at;
        next = byteAt(text, next) == '0' ? next + 1 : digits(text, next, 100);
        if (next == NO) return NO;
        if (byteAt(text, next) == '.') {
            next = digits(text, next + 1, 99);
            if (next == NO) return NO;
        }
        if (byteAt(text, next) == 'e' || byteAt(text, next) == 'E') {
            int sign = byteAt(text, next + 1);
            next = digits(text, sign == '+' || sign == '-' ? next + 2 : next + 1, 9);
        }
        return next;
    }

    /** A whole number of so many digits at most, spelled as a parser would. */
    public static int whole(byte[] text, int at, int most) {
        int next = byteAt(text, at) == '-' ? at + 1 : at;
        if (byteAt(text, next) == '0') return next == at ? next + 1 : NO;
        return digits(text, next, most);
    }

    /** Some digits, so many at most. */
    public static int digits(byte[] text, int at, int most) {
        int next = at;
        while (next - at < most && byteAt(text, next) >= '0' && byteAt(text, next) <= '9') next++;
        return next == at ? NO : next;
    }

    public static int oneOf(byte[] text, int at, byte[] allowed) {
        for (int each = 0; each < allowed.length; each++) {
            if (byteAt(text, at) == allowed[each]) return at + 1;
        }
        return NO;
    }

    public static int literal(byte[] text, int at, byte[] wanted) {
        if (text.length - at < wanted.length) return NO;
        for (int next = 0; next < wanted.length; next++) {
            if (text[at + next] != wanted[next]) return NO;
        }
        return at + wanted.length;
    }

    /** A byte from 0 to 255; 0, which stands nowhere in JSON, behind the end. */
    public static int byteAt(byte[] text, int at) {
        return at < text.length ? text[at] & 0xff : 0;
    }

    public static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    /** The texts that stand between separators; none of an empty one. */
    public static byte[][] parts(String texts, String separator) {
        String[] each = texts.isEmpty() ? new String[0] : texts.split(separator);
        byte[][] found = new byte[each.length][];
        for (int at = 0; at < each.length; at++) found[at] = bytes(each[at]);
        return found;
    }
}
