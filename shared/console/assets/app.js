var h,Je,Kt,D,Re,fe,Ye,le,et,Ce,Me,tt,ee=Symbol.for("pv"),_e={},ge=[],Vt=/^m(i|n|o|s|text|space)$/,$e=Array.isArray,nt=ge.slice,Q=Object.assign;function H(t){t&&
t.parentNode&&t.remove()}function de(t,e,n,s,a){var r={type:t,props:e,key:n,ref:s,__k:null,__:null,__b:0,__e:null,__c:null,constructor:ee,__v:a||++Je,__i:-1,__u:0};return!a&&h.vnode&&h.
vnode(r),r}function y(t){return t.children}function pe(t,e){this.props=t,this.context=e,this.__g=0}function j(t,e){if(e==null)return t.__&&j(t.__,t.__i+1);for(var n;e<t.__k.
length;e++)if((n=t.__k[e])&&n.__e)return n.__e;return typeof t.type!="function"||t.props.__P?null:j(t)}function zt(t){var e,n=t.__v,s=n.__e,a=[],r=[],i=t.__P;i&&
((e=Q({constructor:ee},n)).__v=n.__v+1,h.vnode&&h.vnode(e),Oe(i,e,n,t.__n,i.namespaceURI,32&n.__u?[s]:null,a,s||j(n),32&n.__u,r),e.__v=n.__v,e.__.__k[e.__i]=e,ut(
a,e,r),n.__=n.__e=null,e.__e!=s&&st(e))}function st(t){if((t=t.__)&&t.__c&&!t.props.__P)return t.__e=null,t.__k.some(function(e){return e&&(t.__e=e.__e)}),st(t)}
function Ee(t){(8&t.__g||(t.__g|=8,D.push(t),fe++))&&Re==h.debounceRendering||((Re=h.debounceRendering)||queueMicrotask)(ot)}function ot(){try{for(var t,e=1;D.length;)
D.length>e&&D.sort(Ye),t=D.shift(),e=D.length,8&t.__g&&zt(t)}finally{(fe=D.length)&&(Re||queueMicrotask)(ot)}}function rt(t,e,n,s,a,r,i,u,d,p,l){var m,f,c,_,S,b,
v=s.__k||ge,g=e.length;for(d=Xt(n,e,v,d,g),m=0;m<g;m++)(c=n.__k[m])!=null&&(f=~c.__i&&v[c.__i]||_e,c.__i=m,b=Oe(t,c,f,a,r,i,u,d,p,l),_=c.__e,(f.ref!=c.ref||8&f.
__u)&&(f.ref&&Ne(f.ref,null,c,f),c.ref&&l.push(c.ref,c.__c||_,c)),S=S||_,4&c.__u?(d=at(c,d,t,!f.__v),f.__e&&(f.__e=null)):typeof c.type=="function"&&b!==void 0?
d=b:_&&(d=_.nextSibling),c.__u&=-21);return n.__e=S,d}function Xt(t,e,n,s,a){var r,i,u,d,p,l,m,f,c,_=n.length,S=_,b=0,v=0,g=t.__k=Array(a);for(r=0;r<a;r++)(i=e[r])!=
null&&typeof i!="boolean"&&typeof i!="function"?(typeof i!="object"||i.constructor===String?i=g[r]=de(null,i):$e(i)?i=g[r]=de(y,{children:i}):i.constructor===ee&&
i.__b?i=g[r]=de(i.type,i.props,i.key,i.ref,i.__v):g[r]=i,d=r+b,i.__=t,i.__b=t.__b+1,u=null,~(p=i.__i=Zt(i,n,d,S))&&(S--,(u=n[p])&&(u.__u|=2)),u&&u.__v?(i.__u|=16,
p==d-1?b--:p==d+1?b++:p!=d&&(p>d?b--:b++,v=1)):(~p||(a>_?b--:a<_&&b++),typeof i.type!="function"&&(i.__u|=4))):g[r]=null;if(v){for(l=[],m=[],r=0;r<a;r++)if((i=g[r])&&
16&i.__u){for(b=0,f=l.length;b<f;)l[c=b+f>>1]<i.__i?b=c+1:f=c;l[b]=i.__i,m[r]=b+1}for(b=l.length;r--;)m[r]&&(m[r]==b?b--:g[r].__u|=4)}if(S)for(r=0;r<_;r++)!(u=n[r])||
2&u.__u||(u.__e==s&&(s=j(u)),Ge(u,u));return s}function at(t,e,n,s){var a,r,i,u;if(typeof t.type=="function"){if(t.props.__P)return e;if(a=t.__k)for(r=0;r<a.length;r++)
a[r]&&(a[r].__=t,e=at(a[r],e,n,!1));return e}for(e&&!e.parentNode&&(e=j(t))&&!e.parentNode&&(e=null),i=t.__e,u=e;u&&u.nodeType==8;)u=u.nextSibling;for(i!=u&&(!s&&
n.moveBefore&&i.parentNode?n.moveBefore(i,e):n.insertBefore(i,e||null)),e=i;(e=e&&e.nextSibling)&&e.nodeType==8&&!e.data.startsWith("$s"););return e}function Zt(t,e,n,s){var a,r=t.key,i=t.type,u=e[n],d=u&&!(2&u.__u);if(u===null&&r==null||d&&r==u.key&&i==u.type)return n;if(s>(d?1:0)){for(a=n-1;a>=0;a--)if((u=
e[a])&&!(2&u.__u)&&r==u.key&&i==u.type)return a;for(a=n+1;a<e.length;a++)if((u=e[a])&&!(2&u.__u)&&r==u.key&&i==u.type)return a}return-1}function Ze(t,e,n){n==null&&
(n=""),e[0]=="-"?t.setProperty(e,n):t[e]=n}function ce(t,e,n,s,a){var r,i;if(e=="style")if(typeof n=="string")t.style.cssText=n;else{if(typeof s=="string"&&(t.style.
cssText=s=""),s)for(e in s)n&&e in n||Ze(t.style,e);if(n)for(e in n)s&&n[e]==s[e]||Ze(t.style,e,n[e])}else if(e[0]=="o"&&e[1]=="n")typeof n!="function"&&(n=null),
typeof s!="function"&&(s=null),(t.__e||(t.__e={}))[e]=n,n&&s||(i=Me[e]||(Me[e]=Jt(e)),(t.__a||(t.__a={}))[e]=Ce,r=e!=(e=e.replace(et,"$1")),(e=e.slice(2))[0]<"a"&&
(e=e.toLowerCase()),n?t.addEventListener(e,i,r):t.removeEventListener(e,i,r));else{if(a=="http://www.w3.org/2000/svg")e=e.replace(/xlink(H|:h)/,"h").replace(/sName$/,
"s");else if(e!="width"&&e!="height"&&e!="href"&&e!="list"&&e!="form"&&e!="tabIndex"&&e!="download"&&e!="rowSpan"&&e!="colSpan"&&e!="role"&&e!="popover"&&e in t)
try{return void(t[e]=n??"")}catch{}if(typeof n=="function")return;n==null||n===!1&&e[4]!="-"?t.removeAttribute(e):t.setAttribute(e,e=="popover"&&n==1?"":n)}}function Jt(t){
return function(e){var n=this.__e;if(n){if(n=n[t],e[le]==null)e[le]=Ce++;else if(e[le]<this.__a[t])return;return n(h.event?h.event(e):e)}}}function Oe(t,e,n,s,a,r,i,u,d,p){
var l,m,f,c,_,S,b,v,g,T,w,Ae,ze,ue,q,Xe,I,F,O=e.type;if(e.constructor!==ee)return null;128&n.__u&&(d=32&n.__u,l=n.__c.__z)&&(e.__u|=d,m=r=[],l.nodeType==8?u=me(
l,r):r.push(l),u=r[0]||u),(l=h.__b)&&l(e);e:if(typeof O=="function"){f=i.length;try{if(v=e.props,g=(l=O.prototype)&&l.render,T=(l=O.contextType)&&s[l.__c],w=l?T?
T.props.value:l.__:s,(c=n.__c)?(e.__c=c,2&c.__g&&(c.__g|=1)):(g?e.__c=c=new O(v,w):(e.__c=c=new pe(v,w),c.constructor=O,c.render=en),T&&T.sub(c),c.state||(c.state=
{}),c.__n=s,c.__g|=8,c.__h=[],c.__k=[]),g&&(c.__s||(c.__s=c.state),O.getDerivedStateFromProps&&(c.__s==c.state&&(c.__s=Q({},c.__s)),Q(c.__s,O.getDerivedStateFromProps(
v,c.__s)))),_=c.props,S=c.state,c.__v=e,n.__c){if(v!==_&&g&&!O.getDerivedStateFromProps&&c.componentWillReceiveProps&&c.componentWillReceiveProps(v,w),e.__v==n.
__v&&!(8&c.__g)||!(4&c.__g)&&c.shouldComponentUpdate&&c.shouldComponentUpdate(v,c.__s,w)===!1){e.__v!=n.__v&&(c.props=v,c.state=c.__s,c.__g&=-9),e.__e=n.__e,e.__k=
n.__k,e.__k.some(function(E){E&&(E.__=e)}),ge.push.apply(c.__h,c.__k),c.__k=[],c.__h.length&&i.push(c),u=j(n);break e}c.componentWillUpdate&&c.componentWillUpdate(
v,c.__s,w),g&&c.componentDidUpdate&&c.__h.push(function(){c.componentDidUpdate(_,S,b)})}else g&&!O.getDerivedStateFromProps&&c.componentWillMount&&c.componentWillMount(),
g&&c.componentDidMount&&c.__h.push(c.componentDidMount);c.context=w,c.props=v,c.__P=t,c.__g&=-5,Ae=h.__r,ze=g?25:0;do c.__g&=-9,Ae&&Ae(e),l=c.render(c.props,c.state=
c.__s,c.context);while(8&c.__g&&++ze<25);g&&(ge.push.apply(c.__h,c.__k),c.__k=[]),c.state=c.__s,c.getChildContext&&(s=Q({},s,c.getChildContext())),g&&n.__c&&c.getSnapshotBeforeUpdate&&
(b=c.getSnapshotBeforeUpdate(_,S)),ue=l&&l.type===y&&l.key==null?l.props.children:l,v.__P&&(l=u,a=(t=v.__P).namespaceURI,d=r=null,n.props&&n.props.__P!=t&&(n.__k.
some(function(E){E&&Ge(E,E)}),n.__k=null),u=n.__k?j(n,0):null),u=rt(t,$e(ue)?ue:[ue],e,n,s,a,r,i,u,d,p),v.__P&&(e.__e=null,u=l),e.__u&=-161,m&&m.some(H),c.__h.length&&
i.push(c),1&c.__g&&(c.__g&=-4)}catch(E){if(i.length=f,e.__v=null,d||r)if(E&&E.then){if(e.__u|=128|d,r){for(~(I=r.indexOf(u||void 0))||(I=r.length);(F=r[I-1])&&F.
nodeType==8;)I--;for(;I<r.length;I++)if(F=r[I])if(r[I]=null,q){if(F==Xe)break}else{if(F.nodeType!=8)break;F.data.startsWith("$s")&&(Xe=me(q=F))}}if(!q){for(;u&&
u.nodeType==8&&u.nextSibling;)u=u.nextSibling;q=u}(l=me(q=e.__c.__z||(e.__c.__z=q)))?(e.__e=q,u=l):e.__e=u,u=u&&u.nextSibling}else r&&r.some(H);else e.__e=n.__e;
e.__k||(e.__k=n.__k||[]),E&&E.then||it(e),h.__e(E,e,n)}}else u=e.__e=Yt(n.__e,e,n,s,a,r,i,d,p,t);return(l=h.diffed)&&l(e),u}function me(t,e){if(t&&t.nodeType==8&&
t.data.startsWith("$s"))for(var n=1;t=t.nextSibling;){if(t.nodeType==8){if(t.data.startsWith("$s"))n++;else if(t.data.startsWith("/$s")&&!--n)return t}e&&e.push(
t)}}function it(t){t&&(t.__c&&(t.__c.__g|=4),t.__k&&t.__k.some(it))}function ut(t,e,n){for(var s=0;s<n.length;)Ne(n[s++],n[s++],n[s++]);h.__c&&h.__c(e,t),t.some(
function(a){try{t=a.__h,a.__h=[],t.some(function(r){r.call(a)})}catch(r){h.__e(r,a.__v)}})}function Yt(t,e,n,s,a,r,i,u,d,p){var l,m,f,c,_,S,b,v,g=n.props||_e,T=e.
props,w=e.type;if(w=="svg"?a="http://www.w3.org/2000/svg":w=="math"?a="http://www.w3.org/1998/Math/MathML":a||(a="http://www.w3.org/1999/xhtml"),r){for(l=0;l<r.
length;l++)if((_=r[l])&&(w?_.localName==w:_.nodeType==3)){t=_,r[l]=null;break}}if(!t){if(v=p.ownerDocument||document,!w)return v.createTextNode(T);t=v.createElementNS(
a,w,T.is?T:p),u&&(h.__m&&h.__m(e,r),u=!1),r=null}if(w){if(p=w=="template"&&t.content||t,r=w=="textarea"&&T.defaultValue!=null?null:r&&nt.call(p.childNodes),!u&&
r)for(g={},l=0;l<t.attributes.length;l++)g[(_=t.attributes[l]).name]=_.value;for(l in g)_=g[l],l=="dangerouslySetInnerHTML"?f=_:l=="children"||l in T||l=="value"&&
"defaultValue"in T||l=="checked"&&"defaultChecked"in T||ce(t,l,null,_,a);for(l in T)_=T[l],l=="children"?c=_:l=="dangerouslySetInnerHTML"?m=_:l=="value"?S=_:l==
"checked"?b=_:u&&typeof _!="function"||g[l]===_||ce(t,l,_,g[l],a);m?(u||f&&(m.__html==f.__html||m.__html==t.innerHTML)||(t.innerHTML=m.__html),e.__k=[]):(f&&(t.
textContent=""),(w=="foreignObject"||a=="http://www.w3.org/1998/Math/MathML"&&Vt.test(w))&&(a="http://www.w3.org/1999/xhtml"),rt(p,$e(c)?c:[c],e,n,s,a,r,i,r?r[0]:
n.__k&&j(n,0),u,d),r&&r.some(H)),u&&w!="textarea"||(l="value",w=="progress"&&S==null?t.removeAttribute(l):S==null||S===t[l]&&(w!="progress"||S)||ce(t,l,S,g[l],a),
l="checked",b!=null&&b!=t[l]&&ce(t,l,b,g[l],a))}else g===T||u&&t.data==T||(t.data=T);return t}function Ne(t,e,n,s){try{typeof t=="function"?e?e.__x=t(e)||1:s&&(s=
s.__c||s.__e)&&(e=s.__x)&&(s.__x=null,typeof e=="function"?e():t(null)):t.current=e}catch(a){h.__e(a,n)}}function Ge(t,e,n){var s,a,r,i;if(h.unmount&&h.unmount(
t),!(s=t.ref)||s.current&&s.current!=t.__e||Ne(s,null,e,t),s=t.__c){if(s.componentWillUnmount)try{s.componentWillUnmount()}catch(u){h.__e(u,e)}s.__P=s.__n=null}
if(s=t.__k)for(i=0;i<s.length;i++)s[i]&&Ge(s[i],e,typeof t.type!="function"||n&&!t.props.__P);!n&&(s=t.__c)&&(s=s.__z)&&(a=me(s,r=[]))&&(s==t.__e&&r.some(H),H(a),
H(s)),n||H(t.__e),t.__e=t.__c=t.__=null}function en(t,e,n){return this.constructor(t,n)}function ct(t,e){var n,s,a,r;h.__&&h.__(t,e),e.nodeType==9&&(e=e.documentElement),
s=(n=t&&32&t.__u)?null:e.__k,e.__k=de(y,{children:[t]}),a=[],r=[],Oe(e,e.__k,s||_e,_e,e.namespaceURI,s?null:e.firstChild?nt.call(e.childNodes):null,a,s?s.__e:e.
firstChild,n,r),ut(a,e.__k,r),e.__k.props.children=null}function lt(t){function e(n){var s,a;return this.getChildContext||(s=new Set,(a={})[e.__c]=this,this.getChildContext=function(){return a},this.shouldComponentUpdate=
function(r){this.props.value!=r.value&&s.forEach(function(i){i.__g|=4,Ee(i)})},this.sub=function(r){s.add(r);var i=r.componentWillUnmount;r.componentWillUnmount=
function(){s.delete(r),i&&i.call(r)}}),n.children}return e.__c="__cC"+tt++,e.__=t,e.Provider=(e.Consumer=function(n,s){return n.children(s)}).contextType=e,e}h={__e:function(t,e,n,s){for(var a,r,i;e=e.__;)if((a=e.__c)&&!(1&a.__g)){a.__g|=4;try{if((i=(r=a.constructor)&&r.getDerivedStateFromError)&&a.setState(r.getDerivedStateFromError(
t)),a.componentDidCatch&&(a.componentDidCatch(t,s||{}),i=1),i&&8&a.__g)return void(a.__g|=2)}catch(u){t=u}}throw fe=0,t}},Je=0,Kt=function(t){return t!=null&&t.
constructor===ee},pe.prototype.setState=function(t,e){var n=this.__s;n&&n!=this.state||(n=this.__s=Q({},this.state)),typeof t=="function"&&(t=t(Q({},n),this.props)),
t&&(Q(n,t),this.__v&&(e&&this.__k.push(e),Ee(this)))},pe.prototype.forceUpdate=function(t){this.__v&&(this.__g|=4,t&&this.__h.push(t),Ee(this))},pe.prototype.render=
y,D=[],fe=0,Ye=function(t,e){return t.__v.__b-e.__v.__b},le=Symbol(),et=/(PointerCapture)$|Capture$/i,Ce=0,Me={},tt=0;var V,k,Ie,dt,De=Object.is,he=0,vt=[],je=[],x=h,pt=x.__b,mt=x.__r,ft=x.diffed,_t=x.__c,gt=x.unmount,ht=x.__;function be(t,e){x.__h&&x.__h(k,t,he||e),he=0;var n=k.
__H||(k.__H={__:[],__h:[]});return t>=n.__.length&&n.__.push({}),n.__[t]}function A(t){return he=1,qe(xt,t)}function qe(t,e,n){var s=be(V++,2);if(s.t=t,!s.__c&&
(s.__=[n?n(e):xt(void 0,e),function(r){var i=(s.__N||s.__)[0],u=s.t(i,r);De(i,u)||(s.__N=[u,s.__[1]],s.__c.setState({}))}],s.__c=k,!k.__f)){k.__f=!0;var a=k.shouldComponentUpdate;
k.shouldComponentUpdate=function(r,i,u){var d=this.__H;if(!d)return!0;var p=!1,l=this.props!=r;if(d.__.some(function(f){f.__N&&(p=!0,De(f.__[0],f.__N[0])||(l=!0))}),
a){var m=a.call(this,r,i,u);return p?m||l:m}return!p||l}}return s.__}function M(t,e){var n=be(V++,3);!x.__s&&kt(n.__H,e)&&(n.__P=!0,n.__=t,n.u=e,k.__H.__h.push(
n))}function ne(t){return he=5,R(function(){return{current:t}},[])}function R(t,e){var n=be(V++,7);return kt(n.__H,e)&&(n.__=t(),n.__H=e),n.__}function wt(t){var e=k.context[t.__c],n=be(V++,9);return n.c=t,e?(n.__==null&&(n.__=!0,e.sub(k)),e.props.value):t.__}function tn(){var t;do{for(;t=je.shift();)try{te(t)}catch(n){x.__e(n,{__:(t=t.__P)&&t.__v})}for(;t=vt.shift();){var e=t.__H;if(t.__P&&e)try{e.__h.some(te),e.__h.
some(Le),e.__h=[]}catch(n){e.__h=[],x.__e(n,t.__v)}}}while(je.length)}x.__b=function(t){k=null,pt&&pt(t)},x.__=function(t,e){t&&e.__k&&e.__k.__m&&(t.__m=e.__k.__m),
ht&&ht(t,e)},x.__r=function(t){mt&&mt(t),V=0;var e=(k=t.__c).__H;e&&(Ie==k?k.__h=[]:(e.__h.some(te),e.__h.some(Le),V=0),e.__h=[],e.__.some(function(n){n.__N&&(n.
__=n.__N),n.u=n.__N=void 0})),Ie=k},x.diffed=function(t){ft&&ft(t);var e=t.__c;e&&e.__H&&(e.__H.__h.length&&yt(vt.push(e)),e.__H.__.some(function(n){n.u&&(n.__H=
n.u)})),Ie=k=null},x.__c=function(t,e){e.some(function(n){try{n.__h.some(te),n.__h=n.__h.filter(function(s){return!s.__||Le(s)})}catch(s){n.__h=[function(){throw s}]}}),
_t&&_t(t,e)},x.unmount=function(t){gt&&gt(t);var e,n,s=t.__c;s&&s.__H&&(s.__H.__.some(function(a){try{if(a.__P&&a.__c){if(n===void 0){for(n=t.__;n&&(!n.__c||!n.
__c.__P);)n=n.__;n=n&&n.__c}a.__P=n,yt(je.push(a))}else te(a)}catch(r){e=r}}),s.__H=void 0,e&&x.__e(e,s.__v))};var bt=typeof requestAnimationFrame=="function";function nn(t){
var e,n=function(){clearTimeout(s),bt&&cancelAnimationFrame(e),setTimeout(t)},s=setTimeout(n,35);bt&&(e=requestAnimationFrame(n))}function yt(t){t!=1&&dt==x.requestAnimationFrame||
((dt=x.requestAnimationFrame)||nn)(tn)}function te(t){var e=k,n=t.__c;typeof n=="function"&&(t.__c=void 0,n()),k=e}function Le(t){var e=k;t.__c=t.__(),k=e}function kt(t,e){
return!t||t.length!=e.length||e.some(function(n,s){return!De(n,t[s])})}function xt(t,e){return typeof e=="function"?e(t):e}var ye=class{decoder=new TextDecoder;rest="";take(e){let n=(this.rest+this.decoder.decode(e,{stream:!0})).split(`
`);if(this.rest=n.pop()??"",this.rest.length>4194304)throw new Error("the watch sent a line that is too long");return n.filter(Boolean).map(s=>JSON.parse(s))}};var se="/apis/visibility.tutti.dev/v1alpha1",St=120,sn=100,N=class extends Error{constructor(n,s,a=0){super(s);this.status=n;this.retryAfterMs=a}status;retryAfterMs},
ve=class{constructor(e,n){this.token=e;this.onRefused=n}token;onRefused;known=new Map;async authenticates(){try{return await this.fetched(se,{}),!0}catch(e){if(e instanceof
N&&e.status===401)return!1;throw e}}async list(e,n){let s=`${se}/${e}`,a=this.known.get(s),r=a?{"If-None-Match":a.etag}:{},i=await this.fetched(s,{headers:r,signal:n});
if(i.status===304&&a)return a.listed;let u=await this.read(s,i,n),d=i.headers.get("ETag");return d&&this.known.set(s,{etag:d,listed:u}),u}async read(e,n,s){let a=/"(.*)"/.
exec(n.headers.get("Warning")??"")?.[1]??"",r=await n.json(),i={items:r.items,version:r.metadata.resourceVersion??"",warning:a};for(let u=0;r.metadata.continue&&
u<sn;u++){let d=`${e}?continue=${encodeURIComponent(r.metadata.continue)}`;r=await(await this.fetched(d,{signal:s})).json(),i.items=i.items.concat(r.items)}return i}async get(e,n){
return await(await this.fetched(`${se}/${e}`,{signal:n})).json()}async*watch(e,n,s){let a=new URLSearchParams({watch:"true",resourceVersion:n,allowWatchBookmarks:"\
true",timeoutSeconds:String(St)}),r=AbortSignal.any([s,AbortSignal.timeout((St+10)*1e3)]),u=(await this.fetched(`${se}/${e}?${a}`,{signal:r})).body.getReader(),
d=new ye;for(;;){let{done:p,value:l}=await u.read();if(p)return;yield d.take(l)}}async fit(e,n,s){let a=JSON.stringify({apiVersion:"visibility.tutti.dev/v1alpha\
1",kind:"Fit",metadata:{name:"question"},spec:{manifests:n}}),r=`${se}/namespaces/${encodeURIComponent(e)}/fits`,i={"Content-Type":"application/json"};return await(await this.
fetched(r,{method:"POST",headers:i,body:a,signal:s})).json()}async fetched(e,n){let s=new Headers(n.headers);s.set("Accept","application/json"),this.token&&s.set(
"Authorization",`Bearer ${this.token}`);let a;try{a=await fetch(e,{...n,headers:s,cache:"no-store",redirect:"error"})}catch(i){throw n.signal?.aborted?i:new N(0,
"the server does not answer")}if(a.ok||a.status===304)return a;let r=Number(a.headers.get("Retry-After")??0)*1e3||0;throw a.status===401&&this.token&&this.onRefused(),
new N(a.status,await on(a),r)}};async function on(t){try{let e=await t.json();if(typeof e.message=="string"&&e.message)return e.message}catch{}return`${t.status}\
 ${t.statusText}`.trim()}var rn=Symbol.for("pv"),an=0;function o(t,e,n,s,a,r){e||(e={});var i,u,d=e;if("ref"in d&&typeof t!="function")for(u in d={},e)u=="ref"?i=e[u]:d[u]=e[u];var p={type:t,props:d,key:n,ref:i,__k:null,
__:null,__b:0,__e:null,__c:null,constructor:rn,__v:--an,__i:-1,__u:0};return(a||r)&&(p.__source=a,p.__self=r),h.vnode&&h.vnode(p),p}function Tt({onToken:t,message:e}){let[n,s]=A(""),a=n.trim().replace(/^Bearer\s+/i,""),r=/^[\x21-\x7e]+$/.test(a);return o("main",{class:"login",children:[o("h1",
{children:"Tutti"}),o("form",{onSubmit:i=>{i.preventDefault(),r&&t(a)},children:[o("label",{for:"token",children:"Bearer token of this cluster"}),o("input",{id:"\
token",type:"password",autocomplete:"off",spellcheck:!1,autofocus:!0,value:n,onInput:i=>s(i.currentTarget.value)}),o("button",{type:"submit",disabled:!r,children:"\
Log in"})]}),e&&o("p",{class:"error",role:"alert",children:e}),o("p",{children:["For example ",o("code",{children:"kubectl create token NAME -n NAMESPACE"}),". \
The token stays in this tab and is forgotten when the tab is closed. With a kubeconfig, ",o("code",{children:"tutti console"})," needs none."]})]})}function P(t){let{namespace:e,name:n}=t.metadata;return e?`${e}/${n}`:n}var Fe=2e3,un=50,cn=15e3,ln=3e4,dn=1e4,C=class{constructor(e,n,s=!1){this.api=e;this.resource=n;this.watched=s}api;resource;watched;snapshot={items:[],freshness:"\
loading",message:""};listeners=new Set;objects=new Map;ending;lingering;gathering;watchAgainAt=0;subscribe(e){return this.listeners.add(e),clearTimeout(this.lingering),
this.ending||(this.ending=new AbortController,this.run(this.ending.signal)),()=>{this.listeners.delete(e),!this.listeners.size&&(this.lingering=setTimeout(()=>this.
stop(),dn))}}stop(){this.ending?.abort(),this.ending=void 0}async run(e){let n=0;for(;!e.aborted;)try{await mn(e),await this.follow(e),n=0}catch(s){if(e.aborted)
return;n+=1;let a=s instanceof N?s.retryAfterMs:0;this.publish("failed",s instanceof Error?s.message:String(s)),await we(Math.max(a,Math.min(cn,1e3*2**n)),e)}}async follow(e){
let n=await this.api.list(this.resource,e);this.objects.clear();for(let s of n.items)this.objects.set(P(s),s);(this.snapshot.freshness!=="live"||!pn(this.snapshot.
items,n.items)||this.snapshot.message!==n.warning)&&this.publish("live",n.warning),this.watched&&Date.now()>=this.watchAgainAt?await this.watch(n.version,e):await we(
Fe,e)}async watch(e,n){try{for(;;){let s=Date.now();for await(let a of this.api.watch(this.resource,e,n)){for(let{type:r,object:i}of a){if(r==="ERROR")throw new N(
i.code??500,i.message??"the watch failed");e=i.metadata.resourceVersion??e,r==="DELETED"?this.objects.delete(P(i)):r!=="BOOKMARK"&&this.objects.set(P(i),i)}a.some(
r=>r.type!=="BOOKMARK")&&this.publishSoon()}Date.now()-s<Fe&&await we(Fe,n)}}catch(s){if(n.aborted)throw s;s instanceof N&&s.status===410||(this.watchAgainAt=Date.
now()+ln)}}publishSoon(){this.gathering??=setTimeout(()=>this.publish("live",this.snapshot.message),un)}publish(e,n){clearTimeout(this.gathering),this.gathering=
void 0,this.snapshot={items:[...this.objects.values()],freshness:e,message:n};for(let s of[...this.listeners])s()}};function pn(t,e){return t.length===e.length&&
t.every((n,s)=>n===e[s])}async function mn(t){for(;globalThis.document?.hidden;)await we(500,t)}function we(t,e){return new Promise((n,s)=>{let a=()=>{clearTimeout(
r),s(new Error("ended"))},r=setTimeout(()=>{e.removeEventListener("abort",a),n()},t);e.addEventListener("abort",a,{once:!0})})}function Pt(t,e){let n=[],s=t.metadata.creationTimestamp;s&&n.push({time:s,title:"Seen by Tutti",details:""});for(let{status:a}of At(t,e)){let r=`${a.count} ${a.
count===1?"pod":"pods"}`,i=new Set((a.pods??[]).map(u=>u.node).filter(Boolean)).size;n.push({time:a.time,title:a.action==="Bind"?`Decided to bind ${r}`:`Decided\
 to evict ${r} for it`,details:[i?`on ${i} ${i===1?"node":"nodes"}`:"",a.domain?`in ${a.domain}`:"",a.attempt?`attempt ${a.attempt}`:"",a.message||a.reason||""].
filter(Boolean).join(", ")})}for(let a of t.status.conditions??[]){if(!a.lastTransitionTime)continue;let r=a.status==="False"?" (no longer)":"";n.push({time:a.lastTransitionTime,
title:`${a.type}${r}`,details:[a.reason,a.message].filter(Boolean).join(": ")})}return n.sort((a,r)=>Date.parse(a.time)-Date.parse(r.time))}function At(t,e){return e.
filter(n=>n.status.gang===P(t))}function Rt(t,e){let n=new Map;for(let{status:a}of At(t,e))if(a.action==="Bind")for(let r of a.pods??[])n.set(r.name,{name:r.name,
node:r.node??""});let s=new Set((t.status.placement??[]).map(a=>a.node));return[...n.values()].filter(a=>s.has(a.node)).sort((a,r)=>a.name<r.name?-1:1)}function z(t){let[e,n]=t.replace(/^#\/?/,"").split("?",2),[s,...a]=(e??"").split("/").map(fn);return{page:s||"overview",parts:a,query:new URLSearchParams(n??"")}}
function fn(t){try{return decodeURIComponent(t)}catch{return t}}function $(t,...e){return`#/${[t,...e].map(encodeURIComponent).join("/")}`}function Mt(t){let e=t.
indexOf("/");return $("gangs",t.slice(0,e),t.slice(e+1))}var ke=class{constructor(e){this.api=e;this.gangs=new C(e,"gangs",!0),this.queues=new C(e,"queues"),this.nodes=new C(e,"nodes"),this.podShapes=new C(e,"podshape\
s"),this.instances=new C(e,"instances"),this.decisions=new C(e,"decisions")}api;gangs;queues;nodes;podShapes;instances;decisions;stop(){for(let e of[this.gangs,
this.queues,this.nodes,this.podShapes,this.instances,this.decisions])e.stop()}},He=lt(void 0);function X(){let t=wt(He);if(!t)throw new Error("there is no sessi\
on");return t}function L(t){let[,e]=qe((n,s)=>n+1,0);return M(()=>t.subscribe(()=>e()),[t]),t.snapshot}function Z(t=1e3){let[e,n]=A(Date.now());return M(()=>{let s=setInterval(
()=>n(Date.now()),t);return()=>clearInterval(s)},[t]),e}function Et(){let[t,e]=A(()=>z(location.hash));return M(()=>{let n=()=>e(z(location.hash));return addEventListener(
"hashchange",n),()=>removeEventListener("hashchange",n)},[]),t}function G(t,e){let{page:n,parts:s,query:a}=z(location.hash);e?a.set(t,e):a.delete(t);let r=a.toString();
history.replaceState(null,"",`${$(n,...s)}${r?`?${r}`:""}`),dispatchEvent(new HashChangeEvent("hashchange"))}var Qe=[["d",86400],["h",3600],["m",60],["s",1]];function _n(t){let e=Math.max(0,Math.floor(t/1e3));if(e<1)return"0s";let n=Qe.findIndex(([,d])=>e>=d),[s,a]=Qe[n],
r=Math.floor(e/a),i=Qe[n+1];if(!i||r>=10||i[0]==="s")return`${r}${s}`;let u=Math.floor((e-r*a)/i[1]);return u?`${r}${s}${u}${i[0]}`:`${r}${s}`}function U(t,e){let n=Date.
parse(t??"");return Number.isNaN(n)?"":_n(e-n)}function Ct(t){let e=Date.parse(t??"");return Number.isNaN(e)?"":new Date(e).toISOString().replace("T"," ").replace(
/\.\d+Z$/,"Z")}var gn={n:1e-9,u:1e-6,m:.001,"":1,k:1e3,M:1e6,G:1e9,T:1e12,P:1e15,E:1e18,Ki:1024,Mi:1048576,Gi:1073741824,Ti:1099511627776,Pi:0x4000000000000,Ei:1152921504606847e3},
hn=/^([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)([a-zA-Z]*)$/;function xe(t){let e=hn.exec(t??""),n=e?gn[e[2]??""]:void 0,s=e&&n!==void 0?Number(e[1])*n:NaN;return Number.
isFinite(s)?s:void 0}function B(t){return xe(t)??0}function bn(t){return t.endsWith("memory")||t.endsWith("storage")||t.includes("hugepages")}function Se(t,e){let n=e<
0?"\u2212":"",s=Math.abs(e);if(s>0&&s<.9995)return`${n}${$t(s*1e3)} m`;let[a,r,i]=bn(t)?[1024,["","Ki","Mi","Gi","Ti","Pi","Ei"],1024]:[1e3,["","k","M","G","T",
"P","E"],1e4],u=s,d=0;for(;u>=(d?a:i)*.9995&&d<r.length-1;)u/=a,d+=1;return`${n}${$t(u)} ${r[d]}`.trimEnd()}function $t(t){return t>=99.95?String(Math.round(t)):
String(Number(t.toFixed(1)))}function Ot(t){return t.slice(t.lastIndexOf("/")+1)}function Nt(t){let e=n=>n.includes("/")?0:n==="cpu"?1:n==="memory"?2:n==="pods"?
4:3;return[...t].sort((n,s)=>e(n)-e(s)||(n<s?-1:1))}function J({children:t,of:e}){let n=e.find(u=>u.freshness==="failed"),s=e.find(u=>u.message&&u!==n),a=e.some(u=>u.freshness==="loading"),[r,i]=n?["not current",
"bad"]:a?["loading","idle"]:["live","good"];return o(y,{children:[o("h1",{children:[t," ",o("span",{class:`badge ${i}`,role:"status",children:r})]}),n&&o("p",{class:"\
error",role:"alert",children:n.message}),s&&o("p",{class:"warning",children:s.message})]})}function Gt({value:t,onSearch:e}){let n=ne(null);return M(()=>{let s=a=>{
let r=a.target;a.key!=="/"||a.ctrlKey||a.metaKey||/^(INPUT|TEXTAREA|SELECT)$/.test(r.tagName)||(a.preventDefault(),n.current?.focus())};return addEventListener(
"keydown",s),()=>removeEventListener("keydown",s)},[]),o("input",{ref:n,type:"search",class:"search",value:t,"aria-label":"Search gangs by name, namespace, queu\
e or reason",placeholder:"Search gangs ( / )",onInput:s=>e(s.currentTarget.value)})}var Ue=["auto","light","dark"];function It(){let[t,e]=A(()=>localStorage.getItem(
"tutti.theme")??"auto");M(()=>{document.documentElement.dataset.theme=t,localStorage.setItem("tutti.theme",t)},[t]);let n=Ue[(Ue.findIndex(s=>s===t)+1)%Ue.length];
return o("button",{type:"button",onClick:()=>e(n),title:`Change to ${n}`,children:["Theme: ",t]})}var yn={Running:"good",Starting:"busy",Unknown:"bad",Inqueue:"\
wait",Pending:"idle",Completed:"done"};function Te({phase:t}){return o("span",{class:`badge ${yn[t]??"idle"}`,children:t})}function oe({place:t}){return o("a",{
href:Mt(t),children:t})}function re({named:t}){let e=t.names??[],n=t.count-e.length;return o("ul",{class:"inline",children:[e.map(s=>o("li",{children:o(oe,{place:s})},
s)),n>0&&o("li",{children:e.length?`${n} more`:`${n} ${n===1?"gang":"gangs"}`})]})}function Dt({label:t,whole:e,parts:n,marks:s=[]}){let a=r=>`${e>0?Math.min(100,
100*r/e):0}%`;return o("div",{class:"bar",role:"img","aria-label":t,title:t,children:[n.map(r=>o("span",{class:r.kind,style:{width:a(r.value)}},r.kind)),s.map(r=>o(
"i",{class:r.kind,style:{left:a(r.value)}},r.kind))]})}function Y({resource:t,value:e}){return o(y,{children:e===void 0?"\u2013":Se(t,e)})}function W({children:t}){
return o("p",{class:"empty",children:t})}function K({label:t,children:e}){return o("div",{class:"scroll",role:"region","aria-label":t,tabIndex:0,children:e})}var Pe=200;function jt({route:t}){let e=X(),[n="",s=""]=t.parts,a=`${n}/${s}`,r=L(e.gangs),i=R(()=>new C(e.api,`namespaces/${encodeURIComponent(n)}/decisions`),
[e,n]);M(()=>()=>i.stop(),[i]);let u=L(i),d=r.items.find(p=>P(p)===a);return o(y,{children:[o(J,{of:[r,u],children:[o("small",{children:[n,"/"]}),s]}),!d&&r.freshness===
"live"&&o(W,{children:"There is no such gang, or you may not see it. It may have ended."}),d&&o(vn,{gang:d,decisions:u.items})]})}function vn({gang:t,decisions:e}){
let n=Z(),{status:s,metadata:a}=t,{members:r}=s;return o(y,{children:[s.pending&&o("p",{class:"why",children:s.pending.message}),o("dl",{class:"facts",children:[
o("dt",{children:"Phase"}),o("dd",{children:o(Te,{phase:s.phase})}),o("dt",{children:"Members"}),o("dd",{children:[r.running," running, ",r.pending," pending",r.
succeeded?`, ${r.succeeded} succeeded`:"",r.failed?`, ${r.failed} failed`:""," of ",r.total,"; at least ",s.minMember]}),o("dt",{children:"Queue"}),o("dd",{children:o(
"a",{href:`${$("queues")}?${new URLSearchParams({queue:s.queue})}`,children:s.queue})}),o("dt",{children:"Age"}),o("dd",{children:U(a.creationTimestamp,n)}),o(ae,
{name:"API",value:s.dialect}),o(ae,{name:"Domain",value:s.domain}),o(ae,{name:"Node pool",value:s.nodePool}),o(ae,{name:"Attempt",value:s.attempt?String(s.attempt):
""}),o(ae,{name:"Trace",value:s.traceId})]}),s.pending&&o(wn,{pending:s.pending,now:n}),o(kn,{gang:t,decisions:e}),o(xn,{gang:t,decisions:e})]})}function ae({name:t,
value:e}){return e?o(y,{children:[o("dt",{children:t}),o("dd",{children:e})]}):null}function wn({pending:t,now:e}){return o("section",{children:[o("h2",{children:"\
What it waits for"}),o("dl",{class:"facts",children:[o("dt",{children:"Reason"}),o("dd",{children:t.reason}),t.since&&o(y,{children:[o("dt",{children:"Since"}),
o("dd",{children:U(t.since,e)})]}),t.ahead&&o(y,{children:[o("dt",{children:"Ahead of it"}),o("dd",{children:o(re,{named:t.ahead})})]}),t.holders&&o(y,{children:[
o("dt",{children:"Hold what it lacks"}),o("dd",{children:o(re,{named:t.holders})})]}),t.quota&&o(y,{children:[o("dt",{children:"Quota"}),o("dd",{children:o(Lt,{
all:t.quota})})]})]})]})}function Lt({all:t}){return o("ul",{class:"inline",children:t.map((e,n)=>o("li",{children:[e.nodes?`${e.nodes} \xD7 `:"",e.reason,e.missing?
` (${e.missing} ${e.resource} missing)`:""]},n))})}function kn({gang:t,decisions:e}){let n=new Map((t.status.pending?.roles??[]).map(u=>[u.name,u])),s=new Map((t.
status.roles??[]).map(u=>[u.name,u])),a=[...new Set([...s.keys(),...n.keys()])].sort(),r=R(()=>Rt(t,e),[t,e]),i=t.status.placement??[];return o("section",{children:[
o("h2",{children:"Members"}),!a.length&&o(W,{children:"It has no pods yet."}),a.length>0&&o(K,{label:"Members by role",children:o("table",{children:[o("thead",{
children:o("tr",{children:[o("th",{scope:"col",children:"Role"}),o("th",{scope:"col",class:"number",children:"Members"}),o("th",{scope:"col",class:"number",children:"\
Placed"}),o("th",{scope:"col",class:"number",children:"Running"}),o("th",{scope:"col",class:"number",children:"Would fit now"}),o("th",{scope:"col",children:"No\
des refuse because"})]})}),o("tbody",{children:a.map(u=>{let[d,p]=[s.get(u),n.get(u)];return o("tr",{children:[o("th",{scope:"row",children:u||"(none)"}),o("td",
{class:"number",children:d?.members??"\u2013"}),o("td",{class:"number",children:d?.placed??"\u2013"}),o("td",{class:"number",children:d?.running??"\u2013"}),o("\
td",{class:"number",children:p?`${p.fitting} of ${p.wanted}`:"\u2013"}),o("td",{children:p?.refusals&&o(Lt,{all:p.refusals})})]},u)})})]})}),i.length>0&&o("h3",
{children:["On ",i.length," ",i.length===1?"node":"nodes"]}),r.length>0?o(K,{label:"Members and their nodes",children:o("table",{children:[o("thead",{children:o(
"tr",{children:[o("th",{scope:"col",children:"Pod"}),o("th",{scope:"col",children:"Node"})]})}),o("tbody",{children:r.slice(0,Pe).map(u=>o("tr",{children:[o("th",
{scope:"row",children:u.name}),o("td",{children:u.node})]},u.name))})]})}):o("ul",{class:"inline",children:i.slice(0,Pe).map(u=>o("li",{children:[u.node," (",u.
members,")"]},u.node))}),Math.max(r.length,i.length)>Pe&&o("p",{children:["The first ",Pe," are shown."]})]})}function xn({gang:t,decisions:e}){let n=R(()=>Pt(t,
e),[t,e]),s=Date.parse(n[0]?.time??"");return o("section",{children:[o("h2",{children:"History"}),o("ol",{class:"history",children:n.map((a,r)=>o("li",{children:[
o("time",{dateTime:a.time,children:Ct(a.time)})," ",o("small",{children:["+",((Date.parse(a.time)-s)/1e3).toFixed(1)," s"]})," ",o("strong",{children:a.title}),
" ",a.details]},r))})]})}var Be=["Running","Starting","Unknown","Inqueue","Pending","Completed"];function qt(t){let e=new Map(Be.map(n=>[n,0]));for(let{status:n}of t)e.set(n.phase,(e.get(n.phase)??0)+1);return e}function Ft(t,e){let n=e.toLowerCase().split(/\s+/).filter(Boolean);return n.length?t.filter(s=>{let{status:a}=s,i=[P(s),a.queue,a.phase,a.dialect,a.pending?.reason].
join(" ").toLowerCase();return n.every(u=>i.includes(u))}):[...t]}var Ht=100;function Qt({route:t}){let{gangs:e}=X(),n=L(e),s=Z(),[a,r]=A(Ht),i=t.query.get("search")??"",u=t.query.get("phase")??"",d=t.query.get("queue")??"",p=R(
()=>Ft(n.items,i).filter(f=>!d||f.status.queue===d),[n.items,i,d]),l=R(()=>qt(p),[p]),m=R(()=>p.filter(f=>!u||f.status.phase===u).sort(Sn),[p,u]);return o(y,{children:[
o(J,{of:[n],children:"Gangs"}),o("div",{class:"filters",role:"group","aria-label":"Phase",children:[o("button",{type:"button","aria-pressed":!u,onClick:()=>G("p\
hase",""),children:["All ",p.length]}),Be.map(f=>o("button",{type:"button","aria-pressed":u===f,onClick:()=>G("phase",u===f?"":f),children:[f," ",l.get(f)]},f)),
d&&o("button",{type:"button",onClick:()=>G("queue",""),children:["Queue: ",d," \u2715"]}),i&&o("button",{type:"button",onClick:()=>G("search",""),children:["Sea\
rch: ",i," \u2715"]})]}),n.freshness==="live"&&!m.length&&o(W,{children:"No gang that you may see is like this."}),m.length>0&&o(K,{label:"Gangs",children:o("ta\
ble",{children:[o("thead",{children:o("tr",{children:[o("th",{scope:"col",children:"Gang"}),o("th",{scope:"col",children:"Phase"}),o("th",{scope:"col",class:"nu\
mber",children:"Running"}),o("th",{scope:"col",class:"number",children:"Minimum"}),o("th",{scope:"col",children:"Queue"}),o("th",{scope:"col",children:"Age"}),o(
"th",{scope:"col",children:"Why it waits"})]})}),o("tbody",{children:m.slice(0,a).map(f=>o(Tn,{gang:f,now:s},P(f)))})]})}),m.length>a&&o("p",{children:o("button",
{type:"button",onClick:()=>r(a+4*Ht),children:["Show more: ",m.length-a," are left"]})})]})}function Sn(t,e){let n=s=>s.status.pending?0:1;return n(t)-n(e)||(P(
t)<P(e)?-1:1)}function Tn({gang:t,now:e}){let{status:n,metadata:s}=t;return o("tr",{children:[o("th",{scope:"row",children:o(oe,{place:P(t)})}),o("td",{children:o(
Te,{phase:n.phase})}),o("td",{class:"number",children:[n.members.running,"/",n.members.total]}),o("td",{class:"number",children:n.minMember}),o("td",{children:n.
queue}),o("td",{children:U(s.creationTimestamp,e)}),o("td",{class:"sentence",children:n.pending?.message})]})}function Ut(t){let e=new Map(t.map(i=>[i.metadata.name,i])),n=new Map;for(let i of t){let u=i.status.parent??"",d=e.has(u)&&u!==i.metadata.name?u:"";n.set(d,[...n.
get(d)??[],i])}let s=[],a=new Set,r=(i,u)=>{if(!a.has(i)){a.add(i),s.push({queue:i,depth:u});for(let d of We(n.get(i.metadata.name)??[]))r(d,u+1)}};for(let i of We(
n.get("")??[]))r(i,0);for(let i of We(t))r(i,0);return s}function We(t){return[...t].sort((e,n)=>e.metadata.name<n.metadata.name?-1:1)}function Bt(t){return(t.status.
resources??[]).map(e=>{let n=B(e.used),s=xe(e.deserved);return{resource:e.resource,used:n,wanted:B(e.wanted),promised:B(e.promised),reserved:B(e.reserved),guarantee:B(
e.guarantee),deserved:s,limit:xe(e.limit),borrowed:s===void 0?0:Math.max(0,n-s)}})}var Pn=50;function Wt({route:t}){let{queues:e,gangs:n}=X(),s=L(e),a=L(n),r=R(()=>Ut(s.items),[s.items]),i=R(()=>An(a.items),[a.items]),u=t.query.get("queue")??"";
return o(y,{children:[o(J,{of:[s,a],children:"Queues"}),s.freshness==="live"&&!r.length&&o(W,{children:"There are no queues."}),r.length>0&&o(K,{label:"Queues",
children:o("table",{class:"tree",children:[o("thead",{children:o("tr",{children:[o("th",{scope:"col",children:"Queue"}),o("th",{scope:"col",class:"number",children:"\
Running"}),o("th",{scope:"col",class:"number",children:"Waiting"}),o("th",{scope:"col",children:"Resource"}),o("th",{scope:"col",class:"wide",children:"Share"}),
o("th",{scope:"col",class:"number",children:"Used"}),o("th",{scope:"col",class:"number",children:"Deserved"}),o("th",{scope:"col",class:"number",children:"Borro\
wed"}),o("th",{scope:"col",class:"number",children:"Limit"}),o("th",{scope:"col",class:"number",children:"Waited for"})]})}),r.map(({queue:d,depth:p})=>o(Rn,{queue:d,
depth:p,open:u===d.metadata.name,waiting:i.get(d.metadata.name)??[]},d.metadata.name))]})}),o(Cn,{})]})}function An(t){let e=new Map;for(let n of t){if(!n.status.
pending)continue;let s=e.get(n.status.queue);s?s.push(n):e.set(n.status.queue,[n])}for(let n of e.values())n.sort((s,a)=>Ke(s)<Ke(a)?-1:1);return e}function Ke(t){
return t.status.pending?.since??t.metadata.creationTimestamp??""}function Rn({queue:t,depth:e,open:n,waiting:s}){let{name:a}=t.metadata,{status:r}=t,i=Bt(t),d=Nt(
i.map(m=>m.resource)).map(m=>i.find(f=>f.resource===m)),p=d.length?d:[void 0],l=[r.exists?"":"no such queue",r.state&&r.state!=="Open"?r.state:"",r.strict?"stri\
ct order":"",r.reclaimable?"":"not reclaimable",`weight ${r.weight}`].filter(Boolean).join(", ");return o("tbody",{children:[p.map((m,f)=>o("tr",{children:[f===
0&&o(y,{children:[o("th",{scope:"rowgroup",rowSpan:p.length,children:o("span",{class:"indent",style:{paddingLeft:`${Math.min(e,8)*1.25}rem`},children:[o("button",
{type:"button",class:"disclosure","aria-expanded":n,onClick:()=>G("queue",n?"":a),children:a}),o("small",{children:l})]})}),o("td",{class:"number",rowSpan:p.length,
children:r.gangs.running}),o("td",{class:"number",rowSpan:p.length,children:r.gangs.waiting+r.gangs.notAdmitted})]}),m?o(Mn,{share:m}):o("td",{colSpan:7})]},m?.
resource??"")),n&&o("tr",{children:o("td",{colSpan:10,class:"details",children:o(En,{queue:t,waiting:s})})})]})}function Mn({share:t}){let{resource:e,used:n,wanted:s,
promised:a,reserved:r,deserved:i,limit:u,borrowed:d}=t,p=n-d,l=f=>Se(e,f),m=`${e}: uses ${l(n)}${i===void 0?"":`, deserves ${l(i)}`}${u===void 0?"":`, at most ${l(
u)}`}, waits for ${l(s)}`;return o(y,{children:[o("td",{title:e,children:Ot(e)}),o("td",{class:"wide",children:o(Dt,{label:m,whole:Math.max(u??0,i??0,n+a+r+s),parts:[
{kind:"used",value:p,title:"used"},{kind:"borrowed",value:d,title:"borrowed"},{kind:"kept",value:a+r,title:"kept"},{kind:"wanted",value:s,title:"waited for"}],marks:i===
void 0?[]:[{kind:"deserved",value:i,title:"deserved"}]})}),o("td",{class:"number",children:o(Y,{resource:e,value:n})}),o("td",{class:"number",children:o(Y,{resource:e,
value:i})}),o("td",{class:"number",children:o(Y,{resource:e,value:d||void 0})}),o("td",{class:"number",children:o(Y,{resource:e,value:u})}),o("td",{class:"numbe\
r",children:o(Y,{resource:e,value:s||void 0})})]})}function En({queue:t,waiting:e}){let n=Z(),{name:s}=t.metadata;return o(y,{children:[t.status.message&&o("p",
{children:t.status.message}),t.status.holders&&o("p",{children:["Held mostly by: ",o(re,{named:t.status.holders})]}),!e.length&&o("p",{children:"No gang that yo\
u may see waits in this queue itself."}),e.length>0&&o("table",{children:[o("thead",{children:o("tr",{children:[o("th",{scope:"col",children:"Waiting gang"}),o(
"th",{scope:"col",class:"number",children:"Members"}),o("th",{scope:"col",children:"Since"}),o("th",{scope:"col",children:"Why"})]})}),o("tbody",{children:e.slice(
0,Pn).map(a=>o("tr",{children:[o("td",{children:o(oe,{place:P(a)})}),o("td",{class:"number",children:a.status.members.pending}),o("td",{children:U(Ke(a),n)}),o(
"td",{class:"sentence",children:a.status.pending?.message})]},P(a)))})]}),o("p",{children:o("a",{href:`${$("gangs")}?${new URLSearchParams({queue:s})}`,children:[
"All gangs of ",s]})})]})}function Cn(){return o("ul",{class:"legend","aria-label":"Colours of the shares",children:[o("li",{children:[o("span",{class:"used"}),
" used"]}),o("li",{children:[o("span",{class:"borrowed"})," used beyond its deserved share"]}),o("li",{children:[o("span",{class:"kept"})," kept for admitted ga\
ngs and lost members"]}),o("li",{children:[o("span",{class:"wanted"})," waited for"]}),o("li",{children:[o("span",{class:"mark"})," deserved share"]})]})}var ie="tutti.token",Ve=[{page:"queues",title:"Queues",view:Wt},{page:"gangs",title:"Gangs",view:Qt}];function $n(){let[t,e]=A(()=>sessionStorage.getItem(ie)??""),
[n,s]=A(!1),[a,r]=A(t?!0:void 0),[i,u]=A(""),d=R(()=>{let m=()=>{sessionStorage.removeItem(ie),s(!0),r(!1)};return new ke(new ve(t,m))},[t]);M(()=>()=>d.stop(),
[d]),M(()=>{a===void 0&&d.api.authenticates().then(r,m=>{u(m.message),r(!1)})},[d,a]);let p=m=>{sessionStorage.setItem(ie,m),s(!1),u(""),e(m),r(!0)},l=()=>{sessionStorage.
removeItem(ie),e(""),r(!1)};return a===void 0?o("main",{class:"login",children:"Connecting \u2026"}):a?o(He.Provider,{value:d,children:o(On,{onLogOut:t?l:void 0})}):
o(Tt,{onToken:p,message:n?"The token was refused.":i})}function On({onLogOut:t}){let e=Et(),n=Ve.find(l=>l.page===e.page)??Ve[0],s=e.page==="gangs"&&e.parts.length===
2,a=s?jt:n.view,r=ne(null),i=[e.page,...e.parts].join("/"),u=ne(!0);M(()=>{document.title=`${s?e.parts[1]:n.title} \u2013 Tutti`,u.current||r.current?.focus(),u.
current=!1},[i]);let d=l=>{let m=z(location.hash);m.page==="gangs"&&!m.parts.length?G("search",l):location.hash=`${$("gangs")}?${new URLSearchParams({search:l})}`},
p=e.page==="gangs"&&!s?e.query.get("search")??"":"";return o(y,{children:[o("a",{class:"skip",href:"#main",onClick:l=>{l.preventDefault(),r.current?.focus()},children:"\
Skip to content"}),o("header",{children:[o("strong",{class:"brand",children:"Tutti"}),o("nav",{"aria-label":"Pages",children:Ve.map(({page:l,title:m})=>o("a",{href:$(
l),"aria-current":n.page===l?"page":void 0,children:m},l))}),o(Gt,{value:p,onSearch:d}),o(It,{}),t&&o("button",{type:"button",onClick:t,children:"Log out"})]}),
o("main",{id:"main",tabIndex:-1,ref:r,children:o(a,{route:e},s?i:n.page)})]})}function Nn(){let t=new URLSearchParams(location.hash.slice(1)).get("token");t&&(sessionStorage.
setItem(ie,t),history.replaceState(null,"",location.pathname))}Nn();ct(o($n,{}),document.getElementById("app"));
